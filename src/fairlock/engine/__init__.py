"""The client's half of every call, written once for threads and asyncio, for locks and items, for any store.

Every call has the same shape: `begin_…` is pure bookkeeping and returns the message to send; one exchange with the
store; `finish_…` handles the reply. The exchange is a plain call for a thread (`call_nowait`) and a future for
a task (`acquire_soon`, `release_soon`). Only what has to wait is a coroutine.

In reading order:

    request       what is asked for: the numbers that make a kind of lock, and its messages
    grant_state   the states of a grant, and which may follow which
    grant         what a client knows about one grant, and LeaseBase, a hold on it
    session       one client: its grants, its pending releases, its calls to the store
    acquire       from a request to a hold
    withdraw_request   from a request to nothing
    release       from a hold to nothing; pending releases
    accept_batch  the replies to many tasks at once
    renewal       the keeper renews leases and sends pending releases
    keeper_threads   the threads that run the keepers of all clients which share connections
    renewal_messages   many leases renewed by one message, each reply judged by itself
    local_queue   threads or tasks of one client share one grant
    with_block    `with` around a hold: reentrancy, deadlock with oneself, timeouts as sentences
    ask_to_release   an operator asks a holder to release
    lease_ops     renew, extend and seal a lease or an item; downgrade and detach a lease

    pool_request  the messages of an item of a pool; everything else is the same
    pool_admin    add, remove, list and count items
    snapshots     holders, waiters and pools, as they are shown to people
    busy_name_index  the names that are held or waited for, so that a snapshot reads no others
    operator_actions ask, evict, resize, repair
    operator_audit   the lines that these leave
    find_deadlocks   rings of holders that wait for each other, in a snapshot
    deadlock_behind_timeout   the ring that a wait was part of which has timed out

    client_base, lock_base, pool_base   what the two faces share: options, names, context managers
    cancel_event  `acquire(cancel=event)`
    lease_handles    leases that another process may release or extend
    close_client, fork, recheck_leases   the end of a client, the child of a fork, a store that lost its data

    events        everything that is reported goes through here: to `on_event` and to the log
    validate, refusal_errors, option_types, name_from_text, decorator_names, default_owner, refuse_pickling
                  input, errors and names
    run_sync, boot_clock   how threads run a coroutine; the clock of a client
"""
