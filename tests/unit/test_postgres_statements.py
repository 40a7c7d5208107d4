import pytest

from everthread.stores.postgres.statements import translate


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
        ("FROM a CROSS JOIN b AS c ON c.x = a.x", "FROM a JOIN b AS c ON c.x = a.x"),
        ("FROM a CROSS JOIN json_each(a.x) AS each", "FROM a CROSS JOIN json_each(a.x) AS each"),
        ("SET text = x'', other = x'0aff'", "SET text = '\\x'::bytea, other = '\\x0aff'::bytea"),
        ("WHERE a LIKE '%?:name%' AND b % 2", "WHERE a LIKE '%%?:name%%' AND b %% 2"),
        ("SELECT a::text, 'it''s :so'", "SELECT a::text, 'it''s :so'"),
    ],
)
def test_our_sql_is_what_postgresql_reads(ours: str, theirs: str) -> None:
    assert translate(ours) == theirs
