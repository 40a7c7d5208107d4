import pytest

from everthread.stores.postgres.statements import of_tenant, translate


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = %s AND c = %s"),
        ("SELECT a WHERE b = ?1 AND c = ?2 OR d = ?1", "SELECT a WHERE b = %(p1)s AND c = %(p2)s OR d = %(p1)s"),
        ("WHERE a = :name AND b > :after", "WHERE a = %(name)s AND b > %(after)s"),
        ("WHERE :name IS NULL OR a = :name", "WHERE CAST(%(name)s AS text) IS NULL OR a = %(name)s"),
        ("WHERE ?2 IS NOT NULL", "WHERE CAST(%(p2)s AS text) IS NOT NULL"),
        ("SELECT user, threads.user FROM t", 'SELECT "user", threads.user FROM t'),
        (
            "INSERT INTO t (tenant, user) VALUES (:tenant, :user)",
            'INSERT INTO t (tenant, "user") VALUES (%(tenant)s, %(user)s)',
        ),
        ("owner = 'user' AND owner_id = :user", "owner = 'user' AND owner_id = %(user)s"),
        ("WHERE +tenant = ? AND (+audit.user = ?)", "WHERE tenant = %s AND (audit.user = %s)"),
        ("SET version = version + ?2, n = attempts + 1", "SET version = version + %(p2)s, n = attempts + 1"),
        (
            "WHERE a.id IN (SELECT value FROM json_each(:ids)) AND b = :b",
            "WHERE a.id = ANY (ARRAY(SELECT value FROM json_each(%(ids)s))) AND b = %(b)s",
        ),
        (
            "WHERE id IN (SELECT value FROM json_each(:ids)) OR target IN (SELECT value FROM json_each(:ids))",
            "WHERE id IN (SELECT value FROM json_each(%(ids)s)) OR target IN (SELECT value FROM json_each(%(ids)s))",
        ),
        ("WHERE grid IN (SELECT value FROM json_each(:ids))", "WHERE grid IN (SELECT value FROM json_each(%(ids)s))"),
        ("FROM a CROSS JOIN b AS c ON c.x = a.x", "FROM a JOIN b AS c ON c.x = a.x"),
        ("FROM a CROSS JOIN json_each(a.x) AS each", "FROM a CROSS JOIN json_each(a.x) AS each"),
        ("SET text = x'', other = x'0aff'", "SET text = '\\x'::bytea, other = '\\x0aff'::bytea"),
        ("WHERE a LIKE '%?:name%' AND b % 2", "WHERE a LIKE '%%?:name%%' AND b %% 2"),
        ("SELECT a::text, 'it''s :so'", "SELECT a::text, 'it''s :so'"),
    ],
)
def test_our_sql_is_what_postgresql_reads(ours: str, theirs: str) -> None:
    assert translate(ours) == theirs


OWN = "tenant = %(this_tenant)s"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            "SELECT a FROM search WHERE space = ? AND seq > ?",
            f"SELECT a FROM (SELECT * FROM search WHERE search.{OWN}) AS search WHERE space = %(p1)s AND seq > %(p2)s",
        ),
        (
            "SELECT 1 FROM tasks AS other WHERE other.id = :id",
            f"SELECT 1 FROM (SELECT * FROM tasks WHERE tasks.{OWN}) AS other WHERE other.id = %(id)s",
        ),
        (
            "SELECT 1 FROM json_each(?2) AS fresh CROSS JOIN search ON search.space = ?1",
            "SELECT 1 FROM json_each(%(p2)s) AS fresh "
            f"JOIN (SELECT * FROM search WHERE search.{OWN}) AS search ON search.space = %(p1)s",
        ),
        (
            "UPDATE messages SET text = x'' WHERE id = ? AND (a OR b IN (SELECT c FROM d WHERE e)) RETURNING seq",
            f"UPDATE messages SET text = '\\x'::bytea WHERE messages.{OWN} AND "
            "(id = %(p1)s AND (a OR b IN (SELECT c FROM d WHERE e))) RETURNING seq",
        ),
        (
            "DELETE FROM relations WHERE id = ? OR target = ?",
            f"DELETE FROM relations WHERE relations.{OWN} AND (id = %(p1)s OR target = %(p2)s) ",
        ),
        ("DELETE FROM relations", f"DELETE FROM relations WHERE relations.{OWN} "),
        (
            "INSERT INTO search (space, id) VALUES (?, ?) ON CONFLICT (space, id) DO UPDATE SET seq = excluded.seq",
            "INSERT INTO search (tenant, space, id) VALUES (%(this_tenant)s, %(p1)s, %(p2)s) "
            "ON CONFLICT (tenant, space, id) DO UPDATE SET seq = excluded.seq",
        ),
        (
            "INSERT INTO relations (id) SELECT DISTINCT id FROM records",
            "INSERT INTO relations (tenant, id) SELECT DISTINCT %(this_tenant)s, id "
            f"FROM (SELECT * FROM records WHERE records.{OWN}) AS records",
        ),
        (
            "INSERT INTO records (id, tenant) VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
            "INSERT INTO records (id, tenant) VALUES (%s, %s) ON CONFLICT (tenant, id) DO NOTHING",
        ),
        ("SELECT name FROM threads WHERE thread_id = ?", "SELECT name FROM threads WHERE thread_id = %s"),
    ],
)
def test_a_statement_of_a_tenant_is_about_its_rows_alone(ours: str, theirs: str) -> None:
    assert translate(of_tenant(ours)) == theirs
