import pytest

from sskafka.pipelines.files.ddl import SchemaError, parse_column, parse_ddl


def test_columns_types_and_nulls() -> None:
    schema = parse_ddl("id BIGINT NOT NULL, `a b` string, tags array<string>, m map<string, int>, d decimal(10, 2)")
    assert schema.names == ("id", "a b", "tags", "m", "d")
    assert schema.required == ("id",)
    assert schema.ddl() == "`id` bigint, `a b` string, `tags` array<string>, `m` map<string,int>, `d` decimal(10,2)"


def test_nested_structs() -> None:
    schema = parse_ddl("who struct<name: string, home: struct<city string>>")
    assert schema.ddl() == "`who` struct<`name`: string, `home`: struct<`city`: string>>"


def test_a_column_whose_name_stands_apart() -> None:
    column = parse_column("at", "timestamp not null")
    assert (column.name, column.type, column.is_required) == ("at", "timestamp", True)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "a column name is missing"),
        ("id", "a type is missing"),
        ("id strin", "did you mean string?"),
        ("id str", "did you mean string?"),
        ("id string,", "at the end"),
        ("id array<int", "'>' is missing"),
        ("id array", "'<' is missing"),
        ("id int, ID int", "twice"),
        ("id int not", "only NULL"),
        ("id int ; x", "is not valid in a schema"),
    ],
)
def test_mistakes_say_what_to_write(text: str, part: str) -> None:
    with pytest.raises(SchemaError, match=part):
        parse_ddl(text)
