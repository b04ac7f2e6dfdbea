"""The tool with Redis, by -u alone: the tests that do not depend on the store, and those that do.

A server in the network cannot see a process die. If a wrapper is killed, others wait until its lease ends; a store on
this machine notices at once. The command dies with its wrapper in both cases: the watchdog does that, not the store.
"""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import (
    test_ask,
    test_commands,
    test_evict_resize,
    test_loss,
    test_pool,
    test_run,
    test_terminal,
    test_top,
)
from tests.cli.conftest import Tool, alive, until
from tests.machine_load import within
from tests.servers.server import Server

terminal, top, crowd = test_terminal.terminal, test_top.top, test_top.crowd

THE_SAME = {
    test_run: """
        it_runs_the_command
        fences_rise
        without_waiting_the_error_names_the_holder
        a_waiter_runs_as_soon_as_the_holder_ends
        after_its_timeout_a_waiter_reports_its_position
        readers_share_and_a_writer_waits
        slots
        a_short_job_can_keep_the_others_out_for_a_while
        a_broken_binary_gives_the_lock_back
        the_command_inherits_no_descriptor_of_ours
        stop_and_continue_reach_the_command
        a_signal_ends_the_wait_and_leaves_nothing_behind
        what_runs_on_in_the_background_keeps_neither_the_lock_nor_us
        a_second_term_does_not_cost_the_others_the_lease
    """,
    test_commands: """
        ls_names_the_store_and_the_holders
        ls_shows_waiters_and_slots
        json_has_the_keys_of_the_snapshot
        show_prints_one_name_in_detail
        a_name_with_a_star_is_a_name_to_show_and_a_pattern_to_ls
        a_lease_without_a_process
        it_ends_by_itself
        acquire_in_json
        with_a_ticket_of_its_own_an_acquire_may_be_repeated
        readers_and_slots_can_be_acquired_too
        ctrl_c_while_acquiring_leaves_nothing
    """,
    test_ask: """
        ask_needs_a_reason_and_asks_every_holder_or_one
        show_prints_who_asks_and_what_was_done_before
        after_term_the_lock_is_free_when_the_command_has_ended
    """,
    test_evict_resize: """
        evict_stops_renewals_and_at_once_frees
        evict_one_of_many_by_the_ticket_that_show_prints
        evicting_a_free_name_is_no_error
        evict_by_pattern_affects_only_what_matches
        resize
    """,
    test_loss: """
        a_stopped_wrapper_loses_its_command_before_its_lease
        killing_the_watchdog_does_not_end_the_protection
        a_command_that_holds_too_long_is_stopped
        an_evicted_command_gets_term
        with_warn_the_command_runs_on_and_keeps_its_exit_code
        descendants_are_dead_before_the_next_command_starts
        a_wrapper_killed_while_it_waits_leaves_the_queue
        an_evicted_command_is_dead_before_the_next_one_comes
    """,
    test_pool: """
        items_are_added_from_stdin_one_per_line
        a_taken_item_is_neither_done_nor_removed_without_force
        a_command_that_fails_gives_the_item_back_for_later
        forever_continues_until_no_item_is_left
    """,
    test_terminal: """
        ctrl_c_ends_the_command_once_and_then_us
        ctrl_c_while_waiting_leaves_the_queue
        ctrl_z_and_fg
        ctrl_z_past_the_lease_costs_the_command
        watching
    """,
    test_top: """
        it_draws_the_table_sorted_by_the_waiting_caused
        it_evicts_after_the_reason_and_the_typed_name
        a_deadlock_is_shown
        once_needs_no_terminal
    """,
}
# Of these, one or more of each command every day; all of them in the long runs (conftest.py). Each starts the tool
# several times, which takes a third of a second with the driver, and what they share is tested without Redis every day.
EVERY_DAY = """
    it_runs_the_command
    without_waiting_the_error_names_the_holder
    a_waiter_runs_as_soon_as_the_holder_ends
    readers_share_and_a_writer_waits
    a_signal_ends_the_wait_and_leaves_nothing_behind
    ls_names_the_store_and_the_holders
    a_lease_without_a_process
    acquire_in_json
    ask_needs_a_reason_and_asks_every_holder_or_one
    evict_stops_renewals_and_at_once_frees
    resize
    a_stopped_wrapper_loses_its_command_before_its_lease
    an_evicted_command_gets_term
    a_wrapper_killed_while_it_waits_leaves_the_queue
    items_are_added_from_stdin_one_per_line
    forever_continues_until_no_item_is_left
    ctrl_c_while_waiting_leaves_the_queue
    it_draws_the_table_sorted_by_the_waiting_caused
"""
assert {*EVERY_DAY.split()} <= {name for names in THE_SAME.values() for name in names.split()}
for _module, _names in THE_SAME.items():
    globals().update({f"test_{name}": getattr(_module, f"test_{name}") for name in _names.split()})


@pytest.fixture
def fairlock(tmp_path: Path, redis_alone: Server) -> Iterator[Tool]:
    tool = Tool(tmp_path, redis_alone.url)
    yield tool
    tool.end()


def test_killing_the_wrapper_ends_its_family_at_once_and_the_lock_with_its_lease(fairlock: Tool) -> None:
    first = fairlock.holding("run", "--lease", "2", "x", "-c", test_loss.FAMILY)
    pids = fairlock.pids("child", "near", "far", "naked")
    second = fairlock.start("run", "x", "-c", "date +%s%N > began")
    until(lambda: fairlock.queue("x"))
    killed = time.time_ns()
    first.kill()
    took = until(lambda: not any(map(alive, pids)))
    assert took < within(1, below=10)
    assert second.wait(20) == 0
    (began,) = fairlock.pids("began")
    assert 1 < (began - killed) / 1e9 < within(4, below=15)  # renewed at every third, so 1.3 to 2 s of it are left


def test_a_server_that_hangs_costs_the_command_in_time(fairlock: Tool, redis_alone: Server) -> None:
    first = fairlock.holding("run", "--lease", "1.5", "x", "-c", test_loss.FAMILY)
    pids = fairlock.pids("child", "near", "far", "naked")
    redis_alone.stop()
    assert until(lambda: not any(map(alive, pids))) < 1.5 + 0.5  # the lease may have been renewed just before
    redis_alone.cont()
    _, err = first.communicate(timeout=30)
    assert first.returncode == 79
    assert "was stopped." in err


def test_a_server_that_is_back_in_time_costs_nothing(fairlock: Tool, redis_durable: Server) -> None:
    tool = Tool(fairlock.folder, redis_durable.url)
    first = tool.holding("run", "--lease", "6", "x", "-c", "read line; exit 4")
    redis_durable.kill()
    time.sleep(0.5)
    redis_durable.restart()
    time.sleep(2.5)  # it is renewed in this time
    assert tool("run", "-n", "x", "true").returncode == 75
    first.communicate("go\n", timeout=20)
    assert first.returncode == 4
    assert tool("run", "-n", "x", "true").returncode == 0
    tool.end()


def test_a_server_that_is_not_there_is_a_sentence_and_69(fairlock: Tool, redis_alone: Server) -> None:
    redis_alone.kill()
    for command in (["run", "x", "true"], ["ls"], ["show", "x"], ["acquire", "-n", "x"], ["doctor"]):
        done = fairlock(*command)
        assert done.returncode == 69, command
        assert redis_alone.address in done.stderr + done.stdout, command
        assert "Traceback" not in done.stderr


def test_it_reaches_other_machines(fairlock: Tool) -> None:
    assert fairlock("--scope", "machines", "run", "x", "echo", "in").stdout == "in\n"
    assert json.loads(fairlock("doctor", "--json").stdout)["scope"] == "machines"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_on_the_server(fairlock: Tool, number: signal.Signals) -> None:
    it = fairlock.holding("run", "x", "-c", "echo $$ > up; exec sleep 60")
    fairlock.pids("up")
    it.send_signal(number)
    assert it.wait(20) == 128 + number
    assert fairlock.holders("x") == []
    assert fairlock("run", "-n", "x", "echo", "in").stdout == "in\n"


@pytest.mark.parametrize("store", ["valkey", "redis_sentinel", "redis_cluster"])
def test_valkey_sentinel_and_cluster_by_their_urls(request: pytest.FixtureRequest, tmp_path: Path, store: str) -> None:
    tool = Tool(tmp_path, request.getfixturevalue(store).url)
    try:
        for name in ("a", "b", "c{d}"):  # a Cluster has them in different places
            tool.holding("run", "--owner", "web-3", name, "sleep", "60", name=name)
        tool.start("run", "a", "sh", "-c", "echo > done")
        until(lambda: tool.queue("a"))
        seen = json.loads(tool("ls", "--json").stdout)
        assert seen["store"] == tool.url
        assert [(one["name"], one["holders"][0]["owner"]) for one in seen["resources"]] == [
            ("a", "web-3"), ("b", "web-3"), ("c{d}", "web-3"),
        ]  # fmt: skip
        assert tool("run", "-n", "b", "true").returncode == 75
        assert tool("evict", "a", "--reason", "stuck", "-y", "--at-once").returncode == 0
        until(lambda: (tmp_path / "done").exists())
        ticket = tool("acquire", "e", "--lease", "60").stdout.strip()
        assert tool("release", "e", "--ticket", ticket).returncode == 0
    finally:
        tool.end()
