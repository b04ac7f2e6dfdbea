"""The client's half of every call, written once as coroutines for threads and asyncio, for any runtime and store.

In reading order:

    request       what is asked for: the numbers that make a kind of lock
    grant         what a client knows about one grant, and LeaseBase, a hold on it
    session       one client: its grants, its pending releases, its calls to the store
    acquire       from a request to a hold
    release       from a hold to nothing; pending releases
    renewal       the keeper renews leases and sends pending releases
    renewal_messages   many leases renewed by one message, each reply judged by itself
    local_queue   threads or tasks of one client share one grant
    with_block    `with` around a hold: reentrancy, deadlock with oneself, timeouts as sentences
    lease_ops     renew, extend, downgrade and detach a lease

    pool_acquire, pool_release, pool_renewal   the same for the items of pools
    pool_admin    add, remove, list and count items
    admin         snapshot, evict, resize
    deadlocks     rings of holders that wait for each other, in a snapshot; own_deadlock: that of one wait

    fast_acquire, async_fast_acquire, fast_item   shortcuts for a lock or an item that is free
    cancellation  `acquire(cancel=event)`
    handles       leases that another process may release or extend
    close, fork, store_reset   the end of a client, the child of a fork, a store that lost its data

    events        everything that is reported goes through here: to `on_event` and to the log
    validate, refusals, option_types, safe_name, call_names, owner, pickling   input, errors and names
    run_sync, clock   how threads run a coroutine; the clock of a client
"""
