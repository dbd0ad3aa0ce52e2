"""From MODULE:APP to the app."""

import importlib
import sys

from headway.worker.app import App


class NoApp(Exception):
    """Nothing of this name can be imported, or it is no app."""


def load(place: str) -> App:
    """The app at MODULE:APP, found from the current folder as well."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise NoApp(f"{place}: an app is named as MODULE:APP")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise NoApp(f"{place}: there is no module {error.name}") from error
    app = getattr(found, name, None)
    if not isinstance(app, App):
        raise NoApp(f"{place}: there is no headway.App of this name")
    return app
