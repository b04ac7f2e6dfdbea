"""A table of a real NoSQL service, named by a URL of the store: emptied before each test."""

from typing import Any

from holdfast.backends.oci_nosql import address
from holdfast.backends.oci_nosql.table import Table
from holdfast.client.colour import ThreadColour
from holdfast.flow.run import run


def empty(url: str) -> None:
    """Delete every row of the table behind this URL."""
    found = address.read(url, {})
    table = Table(found.make, found.compartment, found.table, found.where, ThreadColour())
    for row in run(table.query("SELECT t.key FROM {table} t", {})):
        run(_delete(table, row["key"]))


async def _delete(table: Table, key: str) -> None:
    def delete(client: Any) -> Any:
        return client.delete_row(table.name, [f"key:{key}"], compartment_id=table.compartment)

    await table._ask(delete)
