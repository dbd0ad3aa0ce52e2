"""The least that Django needs."""

import os

SECRET_KEY = "tests"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
TASKS = {
    "default": {
        "BACKEND": "headway.integrations.django.HeadwayBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"url": os.environ.get("TEST_URL", "memory:")},
    },
    "other": {
        "BACKEND": "headway.integrations.django.HeadwayBackend",
        "OPTIONS": {
            "url": "memory:",
            "job": {"attempts": 2, "retry": None, "slo": "5s"},
        },
    },
}
