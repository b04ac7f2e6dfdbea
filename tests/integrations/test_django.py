"""Django: a transaction inside a lock keeps every update, the other order loses them; migrations run once."""

from __future__ import annotations

import json
import sys

import pytest

from tests.integrations.conftest import Project
from tests.servers.sql import DATABASE, PASSWORD, USER, PostgreSQL

SETTINGS = """
import os
DATABASES = {"default": %s}
INSTALLED_APPS = ["shop"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
SECRET_KEY = "for tests"
FAIRLOCK = {"target": os.environ["FAIRLOCK_URL"], "namespace": "shop"}
"""
MODELS = """
from django.db import models
class Account(models.Model):
    balance = models.IntegerField(default=0)
"""
MANAGE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
SETUP = """
import os, sys, threading, time
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
import django
django.setup()
from django.db import connection, transaction
from django.test.utils import override_settings
from shop.models import Account
from fairlock import LeaseLost
from fairlock.integrations.django import get_async_locks, get_locks, locked_atomic

def together(*functions):
    errors = []
    def call(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()
    threads = [threading.Thread(target=call, args=(each,)) for each in functions]
    [each.start() for each in threads]
    [each.join(30) for each in threads]
    assert not errors, errors
"""
# Both workers read before the first one commits: the worst order, which happens by itself only under load.
ROUND = """
both_have_read = threading.Barrier(2)
def wrong():
    global first
    with transaction.atomic():
        with get_locks().lock("account:1"):
            mine, first = first, False
            account = Account.objects.get(pk=1)
            if not mine:
                both_have_read.wait(20)
            account.balance += 1
            account.save()
        if mine:
            both_have_read.wait(20)
def right():
    with locked_atomic("account:1"):
        account = Account.objects.get(pk=1)
        account.balance += 1
        account.save()
for n in range(10):
    first = True
    together(*[globals()[sys.argv[1]]] * 2)
print(Account.objects.get(pk=1).balance)
"""


def make(project: Project, database: dict[str, str]) -> Project:
    project.write("settings.py", SETTINGS % json.dumps(database))
    project.write("shop/__init__.py", "")
    project.write("shop/models.py", MODELS)
    project.write("manage.py", MANAGE)
    return project


@pytest.fixture
def shop(project: Project) -> Project:
    return make(project, {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{project.folder}/shop.db"})


@pytest.fixture
def on_postgresql(project: Project, postgresql: PostgreSQL) -> Project:
    where = {"HOST": "127.0.0.1", "PORT": str(postgresql.port), "NAME": DATABASE, "USER": USER, "PASSWORD": PASSWORD}
    return make(project, {"ENGINE": "django.db.backends.postgresql", **where})


def run(project: Project, code: str, *arguments: str) -> str:
    project.write("main.py", SETUP + code)
    return project.run("main.py", *arguments).strip()


CREATE = """
from django.core.management import call_command
call_command("migrate", run_syncdb=True, verbosity=0)
Account.objects.update_or_create(pk=1, defaults={"balance": 0})
"""


def test_a_lock_inside_the_transaction_loses_updates(on_postgresql: Project) -> None:
    assert run(on_postgresql, CREATE + ROUND, "wrong") == "10"


def test_a_transaction_inside_the_lock_keeps_every_update(on_postgresql: Project) -> None:
    assert run(on_postgresql, CREATE + ROUND, "right") == "20"


ENDS = """
def held():
    return any(resource.holders for resource in get_locks().snapshot("account:1").resources)

with locked_atomic("account:1"):
    Account.objects.filter(pk=1).update(balance=5)
    transaction.on_commit(lambda: print("at commit", held()))
print("after commit", held(), Account.objects.get(pk=1).balance)
try:
    with locked_atomic("account:1"):
        Account.objects.filter(pk=1).update(balance=6)
        raise ValueError
except ValueError:
    print("after rollback", held(), Account.objects.get(pk=1).balance)
try:
    with locked_atomic("account:1") as lease:
        Account.objects.filter(pk=1).update(balance=7)
        get_locks().evict("account:1", reason="test", at_once=True)
        while not lease.lost:
            time.sleep(0.01)
except LeaseLost:
    print("after a loss", held(), Account.objects.get(pk=1).balance)
try:
    with transaction.atomic(), locked_atomic("account:1"):
        pass
except RuntimeError as error:
    print("inside", held(), error)
"""


def test_the_lock_is_released_after_commit_and_after_rollback(shop: Project) -> None:
    assert run(shop, CREATE + ENDS).splitlines()[-5:] == [  # before these, the log has a line on the loss
        "at commit True",
        "after commit False 5",
        "after rollback False 5",
        "after a loss False 5",
        "inside False A durable atomic block cannot be nested within another atomic block.",
    ]


CLIENTS = """
import asyncio
one = get_locks()
assert get_locks() is one
with override_settings(FAIRLOCK={"target": "memory://"}):
    print(get_locks().store)
print(get_locks().store.rpartition("/")[2], get_locks() is one)
async def both():
    async with get_async_locks().lock("x"):
        print(get_async_locks() is get_async_locks(), get_locks().lock("x").locked())
asyncio.run(both())
asyncio.run(both())
from django.test import TestCase
class Inside(TestCase):
    def test(self):
        with locked_atomic("account:1"):
            Account.objects.count()
import unittest
print(unittest.TextTestRunner(stream=open(os.devnull, "w")).run(Inside("test")).wasSuccessful())
"""


def test_a_client_belongs_to_its_settings_its_process_and_its_loop(shop: Project) -> None:
    printed = run(shop, CREATE + CLIENTS).splitlines()
    assert printed == ["memory://", "locks.db False", "True True", "True True", "True"]


MIGRATION = """
from django.db import migrations, models
import time
class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.RunPython(lambda apps, editor: time.sleep(0.3)),
        migrations.CreateModel("Account", [("id", models.BigAutoField(primary_key=True)),
                                           ("balance", models.IntegerField(default=0))]),
    ]
"""


def test_migrations_run_once_for_three_pods(shop: Project) -> None:
    shop.write("shop/migrations/__init__.py", "")
    shop.write("shop/migrations/0001_initial.py", MIGRATION)
    command = ["-m", "fairlock", "run", "--wait", "1m", "migrate:shop", "--", sys.executable, "manage.py", "migrate"]
    pods = [shop.start(*command) for _ in range(3)]
    printed = [pod.communicate(timeout=60)[0] for pod in pods]
    assert [pod.returncode for pod in pods] == [0, 0, 0], printed
    assert sum("Applying shop.0001_initial... OK" in each for each in printed) == 1
    assert sum("No migrations to apply" in each for each in printed) == 2
