-- JSON may hold what a text of the server may not: a NUL character, half of a surrogate pair. Of a JSON text that has one
-- anywhere the server reads nothing at all, so that one record that was brought from elsewhere would keep a tenant from
-- being read, looked after and erased. What is read has U+FFFD in its place; what is stored stays as it is.

CREATE FUNCTION json_readable(body text) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN CASE
    WHEN body NOT LIKE '%\\u%' THEN body
    ELSE regexp_replace(
        body,
        '(?<!\\)((?:\\\\)*)\\u(?:0000|d[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2}\\u)d[c-f][0-9a-f]{2})',
        '\1\\ufffd',
        'gi'
    )
END::json;

CREATE OR REPLACE FUNCTION json_extract(body text, path text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN json_readable(body) #>> string_to_array(ltrim(replace(replace(path, '[', '.'), ']', ''), '$.'), '.');
CREATE OR REPLACE FUNCTION json_part(body text, path text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (json_readable(body) #> string_to_array(ltrim(replace(replace(path, '[', '.'), ']', ''), '$.'), '.'))::text;
CREATE OR REPLACE FUNCTION json_each(body text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 20
    BEGIN ATOMIC SELECT value FROM json_array_elements_text(json_readable(body)) AS each (value); END;
CREATE OR REPLACE FUNCTION json_each(body text, path text) RETURNS TABLE (value text)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 5
    BEGIN ATOMIC SELECT value FROM json_array_elements_text(
        json_readable(body) #> string_to_array(ltrim(replace(replace(path, '[', '.'), ']', ''), '$.'), '.')
    ) AS each (value); END;
