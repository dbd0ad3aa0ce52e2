"""A backend for Django's tasks, of Django 6 or of the package django-tasks.

Workers run them with `headway worker headway.integrations.django:app`, or with the alias
of another backend in place of `app`, and DJANGO_SETTINGS_MODULE.
"""

import threading
from collections.abc import Mapping
from datetime import datetime
from traceback import format_exception
from typing import Any, Final

from headway.core import defaults
from headway.worker.app import App
from headway.worker.handler import Handler
from headway.worker.options import EnqueueOptions
from headway.worker.outcomes import current_job

try:
    import django
    from django.apps import apps
    from django.core.exceptions import ImproperlyConfigured
    from django.db import close_old_connections
    from django.utils import timezone
    from django.utils.module_loading import import_string
except ImportError as missing:
    text = "Django is not installed: pip install headway[django]"
    raise ImportError(text) from missing

try:
    from django.tasks import base, signals, task_backends
    from django.tasks.backends.base import BaseTaskBackend
except ImportError:
    try:
        from django_tasks import base, signals, task_backends
        from django_tasks.backends.base import BaseTaskBackend
    except ImportError as missing:
        text = "this Django has no tasks: pip install django-tasks, or Django 6"
        raise ImportError(text) from missing

KIND: Final = "django.task"
_OPTIONS: Final = {"url", "token", "job"}
_apps: dict[str, App] = {}
"""By what they are made from: Django makes a backend for each thread."""
_turn: Final = threading.Lock()


class HeadwayBackend(BaseTaskBackend):
    """Puts tasks into a queue of Headway's.

    OPTIONS has `url`, and if need be `token`, and `job`: what is said of all jobs, as
    `{"slo": "5s", "attempts": 3}`. QUEUES names all queues.
    """

    supports_defer = True
    supports_async_task = True
    supports_priority = True
    supports_get_result = False
    """The queue forgets a job when it is done."""

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        unknown = self.options.keys() - _OPTIONS
        if unknown or not self.options.get("url"):
            rule = f"OPTIONS needs a url, and knows {sorted(_OPTIONS)}"
            raise ImproperlyConfigured(f"TASKS[{alias!r}]: {rule}")
        if not self.queues:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]: QUEUES must name some")
        self.app = _app(alias, self.options, sorted(self.queues))
        """Its handlers run the tasks."""

    def enqueue(
        self, task: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """The task is on stable storage when it returns; the result's id is the job's.

        It is not part of a transaction of the database: `transaction.on_commit` is.
        """
        self.validate_task(task)
        result = _result(task, "", list(args), dict(kwargs), self.alias)
        handler = self.app.handlers[task.queue_name, KIND]
        # Django's highest goes first, Headway's lowest; both have a middle.
        options: EnqueueOptions = {"priority": defaults.PRIORITY - task.priority}
        if task.run_after is not None:
            options["run_at"] = _aware(task.run_after)
        job_id = handler.options(**options).enqueue(
            task.module_path, result.args, result.kwargs
        )
        _set(result, id=job_id, enqueued_at=timezone.now())
        signals.task_enqueued.send(type(self), task_result=result)
        return result


def run_task(alias: str, path: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Runs a task as its worker does; what it raises is the failure of its job."""
    task = import_string(path)
    if not isinstance(task, base.Task):
        raise TypeError(f"{path} is no task")
    job = current_job()
    result = _result(task, job.id, args, kwargs, alias)
    now = timezone.now()
    _set(
        result,
        status=base.TaskResultStatus.RUNNING,
        started_at=now,
        last_attempted_at=now,
        # A task sees by them which attempt it is.
        worker_ids=["headway"] * job.attempt,
    )
    close_old_connections()
    signals.task_started.send(HeadwayBackend, task_result=result)
    try:
        given = [base.TaskContext(task_result=result)] if task.takes_context else []
        task.call(*given, *args, **kwargs)
    except BaseException as error:
        if job.attempt >= job.attempts_max:
            result.errors.append(_told(error))
            _finish(result, base.TaskResultStatus.FAILED)
        raise
    else:
        _finish(result, base.TaskResultStatus.SUCCESSFUL)
    finally:
        close_old_connections()


def _finish(result: Any, status: Any) -> None:
    _set(result, status=status, finished_at=timezone.now())
    signals.task_finished.send(HeadwayBackend, task_result=result)


def _app(alias: str, options: Mapping[str, Any], queues: list[str]) -> App:
    key = repr((alias, sorted(options.items(), key=str), queues))
    with _turn:
        app = _apps.get(key)
        if app is None:
            app = _apps[key] = App(options["url"], token=options.get("token"))
            for queue in queues:
                _add_handler(app, alias, queue, options.get("job", {}))
        return app


def _add_handler(app: App, alias: str, queue: str, options: Mapping[str, Any]) -> None:
    def run(task: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        run_task(alias, task, args, kwargs)

    handler: Handler[..., Any] = app.job(**{**options, "queue": queue, "kind": KIND})(
        run
    )
    assert handler.queue == queue


def _result(
    task: Any, job_id: str, args: list[Any], kwargs: dict[str, Any], alias: str
) -> Any:
    return base.TaskResult(
        task=task,
        id=job_id,
        status=base.TaskResultStatus.READY,
        enqueued_at=None,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=args,
        kwargs=kwargs,
        backend=alias,
        errors=[],
        worker_ids=[],
    )


def _set(result: Any, **fields: Any) -> None:
    """Results are frozen to all but their backend."""
    for name, value in fields.items():
        object.__setattr__(result, name, value)


def _told(error: BaseException) -> Any:
    kind = type(error)
    return base.TaskError(
        exception_class_path=f"{kind.__module__}.{kind.__qualname__}",
        traceback="".join(format_exception(error)),
    )


def _aware(moment: datetime) -> datetime:
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment


def __getattr__(name: str) -> App:
    """`app` of the default backend; any other alias names its own."""
    if name.startswith("_"):
        raise AttributeError(name)
    if not apps.ready:
        django.setup()
    alias = base.DEFAULT_TASK_BACKEND_ALIAS if name == "app" else name
    if alias not in task_backends.settings:
        raise AttributeError(f"TASKS has no {alias!r}")
    backend = task_backends[alias]
    if not isinstance(backend, HeadwayBackend):
        raise AttributeError(f"TASKS[{alias!r}] is no backend of Headway's")
    app: App = backend.app
    return app
