"""Models whose `execute` is a coroutine: one event loop in its own thread for the life of the process."""

import types

from .errors import failure_of

_loop = None


def is_coroutine(value):
    if type(value) is types.CoroutineType:
        return True
    if value is None or type(value) is list:
        return False
    import asyncio

    return asyncio.iscoroutine(value)


def _running_loop():
    global _loop
    if _loop is None:
        import asyncio
        import threading

        _loop = asyncio.new_event_loop()
        threading.Thread(target=_run, args=(_loop,), name="model-events", daemon=True).start()
    return _loop


def _run(loop):
    import asyncio

    asyncio.set_event_loop(loop)
    loop.run_forever()


def result_of(coroutine):
    """Runs a coroutine to its end; what it returns or raises."""
    import asyncio

    return asyncio.run_coroutine_threadsafe(coroutine, _running_loop()).result()


def in_background(coroutine, failed):
    """Starts a coroutine beside the others; `failed` gets the failure when it raises."""
    import asyncio

    future = asyncio.run_coroutine_threadsafe(_guarded(coroutine, failed), _running_loop())
    del future


async def _guarded(coroutine, failed):
    try:
        await coroutine
    except BaseException as error:
        failed(failure_of(error))


def stop():
    if _loop is not None:
        _loop.call_soon_threadsafe(_loop.stop)
