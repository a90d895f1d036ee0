"""Notes how a program ends, whoever shows its error and whatever process, thread or future it was in."""

import atexit
import functools
import multiprocessing.process
import multiprocessing.util
import os
import sys
import threading
import weakref
from concurrent.futures import Future
from concurrent.futures import thread as pools

writers = []  # functions that write the records of the process


def wait_for_threads():
    """Waits for threads of the program, such as one that saves a checkpoint. Called before Python closes the pools of
    threads and processes, because what such a thread gives to a closed pool fails. A thread may wait for Python's own
    end, so none is given more than a minute."""
    processes = sys.modules.get("concurrent.futures.process")
    of_pools = {*pools._threads_queues, *getattr(processes, "_threads_wakeups", ())}
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread() and thread not in of_pools:
            thread.join(timeout=60)


def watch_futures(note_error, take_back):
    """Takes an error that a future keeps to be lost until the program asks the future."""
    with_error = weakref.WeakSet()
    keep = Future.set_exception

    @functools.wraps(keep)
    def note_and_keep(future, error):
        if note_error(error, is_lost=True):
            with_error.add(future)
        keep(future, error)

    def asking(method):
        @functools.wraps(method)
        def ask(future, *arguments, **options):
            try:
                return method(future, *arguments, **options)
            finally:
                if future in with_error:
                    with_error.discard(future)
                    take_back()

        return ask

    Future.set_exception = note_and_keep
    Future.result, Future.exception = asking(Future.result), asking(Future.exception)


def watch_children(note):
    """Calls `note(error)` in a child of multiprocessing that an exception ends. From Python 3.13 on the
    exception is gone when the child's functions for its end are called."""
    start = multiprocessing.process.BaseProcess._bootstrap

    @functools.wraps(start)
    def start_noting(process, *args, **kwargs):
        run = process.run

        def run_noting():
            try:
                run()
            except BaseException as error:
                note(error)
                raise

        process.run = run_noting
        return start(process, *args, **kwargs)

    multiprocessing.process.BaseProcess._bootstrap = start_noting


def watch_process(note_error, take_back, forget, write):
    """Calls `note_error(error, is_lost)` when an exception ends the program, or is lost with a thread or a future,
    `take_back()` when the program gets the error that seemed lost, `forget()` in forked children, which are not the
    program, and `write()` when the process ends."""

    def note(error, is_lost=False):
        return error is not None and not isinstance(error, SystemExit) and note_error(error, is_lost)

    writers.append(write)
    watch_futures(note, take_back)
    show = threading.excepthook

    @functools.wraps(show)
    def note_and_show(arguments):
        note(arguments.exc_value, is_lost=True)
        show(arguments)

    threading.excepthook = note_and_show

    def at_exit():
        note(getattr(sys, "last_value", None))  # the exception that Python, or a library in its place, is about to show
        write()

    def watch_end(*_):
        multiprocessing.util.Finalize(None, at_exit, exitpriority=0)

    watch_children(note)
    leave, leave_at_once = sys.exit, os._exit

    @functools.wraps(leave)
    def leave_after_error(status=None):
        if status:
            note(sys.exc_info()[1])  # the exception that the program has caught and now ends with
        leave(status)

    @functools.wraps(leave_at_once)
    def leave_without_atexit(status):
        if status:
            note(sys.exc_info()[1])
        write()
        leave_at_once(status)

    sys.exit, os._exit = leave_after_error, leave_without_atexit
    os.register_at_fork(after_in_child=forget)
    atexit.register(at_exit)
    watch_end()  # a child of multiprocessing may end without atexit
    multiprocessing.util.register_after_fork(watch_end, watch_end)
