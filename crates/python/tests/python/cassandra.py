"""Statements to a Cassandra, by the native protocol, version 4: what the tests need of a driver."""

import os
import socket
import struct
import unittest

#: A test that needs a server.
needs_cassandra = unittest.skipUnless(os.environ.get("MARQUETRY_CASSANDRA"), "it needs a Cassandra")


class WithKeyspace:
    """A mixin of tests that have a keyspace of their own, `KEYSPACE`, which is new for each."""

    KEYSPACE = "marquetry_python"

    def make_keyspace(self):
        self.server = os.environ["MARQUETRY_CASSANDRA"]
        self.statement(f"DROP KEYSPACE IF EXISTS {self.KEYSPACE}")
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        self.statement(f"CREATE KEYSPACE {self.KEYSPACE} WITH replication = {replication}")
        self.addCleanup(self.statement, f"DROP KEYSPACE {self.KEYSPACE}")

    def address(self, table):
        return f"cql://{self.server}/{self.KEYSPACE}.{table}"

    def statement(self, *texts):
        """Sends statements, one after the other."""
        host, _, port = self.server.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection, connection.makefile("rb") as answers:

            def send(opcode, body):
                connection.sendall(struct.pack(">BBhBi", 4, 0, 0, opcode, len(body)) + body)
                _, _, _, opcode, length = struct.unpack(">BBhBi", answers.read(9))
                body = answers.read(length)
                self.assertNotEqual(opcode, 0, body)

            options = b"\0\1" + b"".join(struct.pack(">h", len(it)) + it for it in (b"CQL_VERSION", b"3.0.0"))
            send(1, options)
            for text in texts:
                encoded = text.encode()
                send(7, struct.pack(">i", len(encoded)) + encoded + struct.pack(">hB", 1, 0))


#: Each type of CQL, with literals of two values: of the rows 1 and 2. A row 3 has none of them.
TYPES = {
    "a_ascii": ("ascii", "'a'", "''"),
    "a_bigint": ("bigint", "9223372036854775807", "-9223372036854775808"),
    "a_blob": ("blob", "0x00ff", "0x"),
    "a_boolean": ("boolean", "true", "false"),
    "a_date": ("date", "'2024-02-29'", "'1582-10-15'"),
    "a_decimal": ("decimal", "12345678901234567890.25", "-0.01"),
    "a_double": ("double", "1.5e300", "-0.25"),
    "a_duration": ("duration", "1mo2d3h", "-5ns"),
    "a_float": ("float", "1.5", "-2.25"),
    "a_inet": ("inet", "'10.0.0.1'", "'2001:db8::1'"),
    "a_int": ("int", "2147483647", "-2147483648"),
    "a_smallint": ("smallint", "32767", "-32768"),
    "a_text": ("text", "'żółw 🐢'", "'it''s'"),
    "a_time": ("time", "'23:59:59.999999999'", "'00:00:00'"),
    "a_timestamp": ("timestamp", "'2024-02-29T12:00:00.123Z'", "'1969-12-31T23:59:59.999Z'"),
    "a_timeuuid": ("timeuuid", "8e8bb3a0-d6f2-11ee-b2a2-0242ac120002", "00000000-0000-1000-8000-000000000000"),
    "a_tinyint": ("tinyint", "127", "-128"),
    "a_uuid": ("uuid", "123e4567-e89b-42d3-a456-426614174000", "ffffffff-ffff-4fff-bfff-ffffffffffff"),
    "a_varint": ("varint", "123456789012345678901234567890", "-1"),
    "a_list": ("list<int>", "[3, 1, 3]", "[0]"),
    "a_set": ("set<text>", "{'b', 'a'}", "{'c'}"),
    "a_map": ("map<text, bigint>", "{'b': 1, 'a': -2}", "{'c': 3}"),
    "a_tuple": ("tuple<int, text>", "(1, 'a')", "(2, null)"),
    "a_place": ("frozen<place>", "{lat: 1.5, names: ['a', 'b']}", "{lat: -2.5, names: null}"),
    "a_deep": ("frozen<map<text, frozen<list<frozen<set<int>>>>>>", "{'a': [{1, 2}, {3}]}", "{'b': []}"),
    "a_vector": ("vector<float, 3>", "[1.0, 2.5, -3.0]", "[0.0, 0.0, 0.0]"),
}


def types_table(case, table, rows=True):
    """Creates a table with a column of each type, and its rows, if they are wanted."""
    keyspace = case.KEYSPACE
    case.statement(f"CREATE TYPE IF NOT EXISTS {keyspace}.place (lat double, names frozen<list<text>>)")
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in TYPES.items())
    case.statement(f"CREATE TABLE {keyspace}.{table} (id int PRIMARY KEY, {columns})")
    if rows:
        names = ", ".join(TYPES)
        for number in (1, 2):
            values = ", ".join(of[number] for of in TYPES.values())
            case.statement(f"INSERT INTO {keyspace}.{table} (id, {names}) VALUES ({number}, {values})")
        case.statement(f"INSERT INTO {keyspace}.{table} (id) VALUES (3)")
