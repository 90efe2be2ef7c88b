"""Derby databases, which Spark brings along: one directory each, opened by one Java process at a time."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET_DERBY = "-Dderby.stream.error.file=/dev/null"
"""An option of Java: Derby would write derby.log into the current directory."""
QUIET_CONF = {"spark.driver.extraJavaOptions": QUIET_DERBY}


class Derby:
    def __init__(self, spark: "SparkSession", directory: Path) -> None:
        self._spark = spark
        self.url = f"jdbc:derby:{directory}"

    @property
    def creating_url(self) -> str:
        return f"{self.url};create=true"

    def execute(self, *statements: str) -> None:
        java = self._spark._jvm
        assert java is not None
        connection = java.java.sql.DriverManager.getConnection(self.creating_url)
        for sql in statements:
            connection.createStatement().executeUpdate(sql)
        connection.close()

    def rows(self, table: str) -> list[dict[str, Any]]:
        reader = self._spark.read.format("jdbc").option("url", self.url).option("dbtable", table)
        return [row.asDict() for row in reader.load().collect()]

    def tables(self) -> list[str]:
        return [
            row["TABLENAME"].lower()
            for row in self.rows("(select tablename from sys.systables where tabletype = 'T') t")
        ]

    def close(self) -> None:
        """Lets another process open it; Derby calls that an exception."""
        java = self._spark._jvm
        assert java is not None
        with suppress(Py4JJavaError):
            java.java.sql.DriverManager.getConnection(f"{self.url};shutdown=true")
