"""A connection to a database in the Java process of Spark's driver, and explanations of its errors.

Spark opens the connection, as it does for its own JDBC writer: Spark finds drivers in the jars that were added to the
session, which Java's DriverManager does not see.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from sskafka.pipelines.files.sink import JdbcSink, shown_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Driver(NamedTuple):
    """The usual driver for a kind of database."""

    java_class: str
    package: str
    """Group and name in Maven's repository, without the version."""


DRIVERS = {
    "postgresql": Driver("org.postgresql.Driver", "org.postgresql:postgresql"),
    "mysql": Driver("com.mysql.cj.jdbc.Driver", "com.mysql:mysql-connector-j"),
    "mariadb": Driver("org.mariadb.jdbc.Driver", "org.mariadb.jdbc:mariadb-java-client"),
    "sqlserver": Driver("com.microsoft.sqlserver.jdbc.SQLServerDriver", "com.microsoft.sqlserver:mssql-jdbc"),
    "oracle": Driver("oracle.jdbc.OracleDriver", "com.oracle.database.jdbc:ojdbc11"),
    "db2": Driver("com.ibm.db2.jcc.DB2Driver", "com.ibm.db2:jcc"),
    "h2": Driver("org.h2.Driver", "com.h2database:h2"),
}
"""Drivers by the word after `jdbc:`. The driver of Derby is part of Spark."""

LARGE_OBJECTS = (2004, 2005)
"""BLOB and CLOB in java.sql.Types."""
NO_DRIVER, NOT_FOUND = "No suitable driver", "ClassNotFoundException"
CONNECTION_STATE, CREDENTIALS_STATE = "08", "28"
OTHER_CREDENTIALS = ("08004", "72000 1017", "S0001 18456")
"""Errors for wrong credentials in Derby, Oracle and SQL Server: the SQL state, with the error code if it is needed."""


class JdbcSinkError(Exception):
    """The database cannot be written; `field` is the field of the sink that is concerned."""

    def __init__(self, message: str, field: str = "url") -> None:
        super().__init__(message)
        self.field = field


class Transaction:
    """A transaction that is committed when its block ends, unless it was rolled back or the block raises."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.is_open = True

    def roll_back(self) -> None:
        self.is_open = False
        self._connection.rollback()


class Database:
    """A context that closes the connection at its end.

    Outside of transactions, each statement is committed by itself."""

    def __init__(self, spark: "SparkSession", sink: JdbcSink) -> None:
        self._sink = sink
        self._java: Any = spark._jvm
        assert self._java is not None, "queries.py refuses Spark Connect, which has no Java process here"
        self._dialect = self._java.org.apache.spark.sql.jdbc.JdbcDialects.get(sink.url)
        with self._explaining():
            self._connection = self._connected()
            self._quote = str(self._connection.getMetaData().getIdentifierQuoteString()).strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(JdbcSinkError), self._explaining():  # the work has succeeded or has already raised
            self._connection.close()

    def _connected(self) -> Any:
        options = self._java.PythonUtils.toScalaMap(jdbc_options(self._sink, self._sink.identifier))
        parsed = self._java.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(options)
        return self._dialect.createConnectionFactory(parsed).apply(-1)

    def quoted(self, name: str) -> str:
        return f"{self._quote}{name}{self._quote}"

    def execute(self, sql: str, *values: str | int) -> int:
        """Run a statement that returns no rows; return the number of rows that it changed."""
        with self._explaining(), self._prepared(sql, values) as statement:
            return int(statement.executeUpdate())

    def number(self, sql: str, *values: str | int) -> int:
        """Return the first column of the only row of a query."""
        with self._explaining(), self._prepared(sql, values) as statement:
            found = statement.executeQuery()
            found.next()
            return int(found.getLong(1))

    def columns(self, table: str) -> list[str] | None:
        """Return the names of the columns; None if the table does not exist or must not be read."""
        with suppress(JdbcSinkError), self._explaining(), self._prepared(f"select * from {table} where 1 = 0") as query:
            described = query.executeQuery().getMetaData()
            return [str(described.getColumnName(number + 1)) for number in range(described.getColumnCount())]
        return None

    def columns_refusing_null(self, rows: "DataFrame", table: str) -> list[str]:
        """Return the columns of `rows` in which this database refuses the null that Spark's JDBC writer sends.

        Spark sends a null as the type that it would create the column with, whatever type the column has. That is a
        CLOB for text and a BLOB for bytes in Derby and Db2, which accept such a null only for columns of that type."""
        types = self._column_types(table)
        utils = self._java.org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils
        refusing = []
        for field in rows._jdf.schema().fields():
            if field.dataType().typeName() in {"string", "binary"}:
                sent = int(utils.getJdbcType(field.dataType(), self._dialect).jdbcNullType())
                if sent in LARGE_OBJECTS and types[field.name().lower()] != sent:
                    refusing.append(str(field.name()))
        return refusing

    def _column_types(self, table: str) -> dict[str, int]:
        """Return the numbers of java.sql.Types by the names of the columns in lower case."""
        with self._explaining(), self._prepared(f"select * from {table} where 1 = 0") as query:
            described = query.executeQuery().getMetaData()
            numbers = range(1, described.getColumnCount() + 1)
            return {str(described.getColumnName(number)).lower(): described.getColumnType(number) for number in numbers}

    def create_empty_copy(self, copy: str, table: str, columns: Sequence[str]) -> None:
        """Create a table with the same column types as another table, in the SQL of this database."""
        selected = f"select {', '.join(columns)}"
        product = str(self._connection.getMetaData().getDatabaseProductName())
        if product == "Apache Derby":
            self.execute(f"create table {copy} as {selected} from {table} with no data")
        elif product.startswith("DB2"):
            self.execute(f"create table {copy} as ({selected} from {table}) with no data")
        elif product == "Microsoft SQL Server":
            self.execute(f"{selected} into {copy} from {table} where 1 = 0")
        else:
            self.execute(f"create table {copy} as {selected} from {table} where 1 = 0")

    def tables_beginning_with(self, prefix: str) -> list[str]:
        """Return the names of tables in any schema, in whatever case the database stores unquoted names."""
        with self._explaining():
            metadata = self._connection.getMetaData()
            pattern = prefix.upper() if metadata.storesUpperCaseIdentifiers() else prefix
            found = metadata.getTables(None, None, f"{pattern}%", None)
            names = []
            while found.next():
                names.append(str(found.getString("TABLE_NAME")))
            return [name for name in names if name.lower().startswith(prefix)]

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction that ends with the block. `setAutoCommit(True)` would commit it, so it is called last."""
        connection = self._connection
        with self._explaining():
            connection.setAutoCommit(False)
        transaction = Transaction(connection)
        try:
            yield transaction
        except BaseException:
            with suppress(JdbcSinkError), self._explaining():  # a lost connection is rolled back by the database
                connection.rollback()
                connection.setAutoCommit(True)
            raise
        with self._explaining():
            if transaction.is_open:
                connection.commit()
            connection.setAutoCommit(True)

    @contextmanager
    def _prepared(self, sql: str, values: Sequence[str | int] = ()) -> Iterator[Any]:
        statement = self._connection.prepareStatement(sql)
        try:
            for number, value in enumerate(values, 1):
                if isinstance(value, int):
                    statement.setLong(number, value)
                else:
                    statement.setString(number, value)
            yield statement
        finally:
            statement.close()

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415  Spark has it

        try:
            yield
        except Py4JJavaError as error:
            raise explained_by_database(error.java_exception, self._sink) from None  # its text may contain the password


def jdbc_options(sink: JdbcSink, table: str) -> dict[str, str]:
    """Return the options of Spark's JDBC writer for a table in the sink's database."""
    driver = sink.driver or (usual.java_class if (usual := usual_driver(sink.url)) else "")
    own = {"url": sink.url, "dbtable": table, "user": sink.user, "password": sink.password, "driver": driver}
    return {**sink.options, **{name: value for name, value in own.items() if value}}


def usual_driver(url: str) -> Driver | None:
    return DRIVERS.get(url.removeprefix("jdbc:").partition(":")[0])


def explained_by_database(error: Any, sink: JdbcSink) -> JdbcSinkError:
    """Return an error that explains a Java exception and says what to do."""
    name, text = str(error.getClass().getName()), str(error.getMessage() or "").strip().split("\n")[0].rstrip(".")
    state, code = _state_of(error)
    if name.endswith(NOT_FOUND) or text == NO_DRIVER:
        return _without_driver(sink)
    url = shown_url(sink.url)
    if state.startswith(CREDENTIALS_STATE) or state in OTHER_CREDENTIALS or f"{state} {code}" in OTHER_CREDENTIALS:
        who = f"the user {sink.user!r}" if sink.user else "a connection without user and password"
        return JdbcSinkError(f"{url} refuses {who}: {text}. Check user and password of the sink", "user")
    if state.startswith(CONNECTION_STATE):
        return JdbcSinkError(f"{url} cannot be reached: {text}. Check the URL, and that the database is running")
    return JdbcSinkError(f"{url} answers: {text or name}", "table")


def _state_of(error: Any) -> tuple[str, int]:
    """Return SQL state and code of an SQLException; empty for other exceptions."""
    with suppress(Exception):  # py4j raises for a method that the exception does not have
        return str(error.getSQLState() or ""), int(error.getErrorCode())
    return "", 0


def _without_driver(sink: JdbcSink) -> JdbcSinkError:
    usual = usual_driver(sink.url)
    if sink.driver and (usual is None or sink.driver != usual.java_class):
        what, package = f"the driver {sink.driver}", "GROUP:NAME"
    else:
        what, package = f"a driver for {shown_url(sink.url)}", usual.package if usual else "GROUP:NAME"
    own_class = "" if usual or sink.driver else ", and name its class in driver"
    return JdbcSinkError(
        f"Spark has no jar with {what}: add `--conf spark.jars.packages={package}:VERSION` (or spark.jars=FILE.jar), "
        f"or the same below `spark:` in the pipeline file{own_class}",
        "driver" if sink.driver else "url",
    )
