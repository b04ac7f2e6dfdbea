"""A table of a real NoSQL service, named by a URL of the store: emptied before each test."""

from typing import Any

from fairlock.engine.run_sync import run
from fairlock.stores.oci_nosql import url
from fairlock.stores.oci_nosql.table_requests import Table
from fairlock.sync.runtime import ThreadRuntime


def empty(target: str) -> None:
    """Delete every row of the table behind this URL."""
    table = Table(url.read(target, {}), ThreadRuntime())
    for row in run(table.query("SELECT t.key FROM {table} t", {})):
        run(_delete(table, row["key"]))


async def _delete(table: Table, key: str) -> None:
    def delete(client: Any) -> Any:
        return client.delete_row(table.name, [f"key:{key}"], compartment_id=table.compartment)

    await table._call(delete)
