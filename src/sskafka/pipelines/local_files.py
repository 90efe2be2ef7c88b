"""A file system class for Spark's local files that sets permissions without starting a program.

Hadoop, without its native library, runs `chmod` for every file that it creates: four processes in a micro-batch for
the files of the checkpoint, and more for each state store. The class below calls Java for this instead. Everything
else, checksum files included, is that of Hadoop's LocalFileSystem.

Java compiles the class when Spark starts for the first time, by the compiler that Spark has for generated code (0.6 s
of CPU time). Later starts load it from the user's cache directory.
"""

import hashlib
import logging
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from sskafka.pipelines.java import cache_directory

CLASS = "sskafka.LocalFiles"
CONF = {"spark.hadoop.fs.file.impl": CLASS}

SOURCE = """
package sskafka;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {
                super.setPermission(path, permission);
                return;
            }
            String text = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(this.pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
        }
    }
}
"""

logger = logging.getLogger(__name__)


def install(jvm: Any) -> dict[str, str]:
    """Add the class to a JVM that has no Spark context yet, and return the settings that select it.

    Returns no settings if the JVM cannot compile or load the class."""
    try:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        directory = class_directory()
        if not directory.exists():
            directory = _compile(jvm, loader, directory)
        loader.addURL(jvm.java.io.File(f"{directory}/").toURI().toURL())
        loader.loadClass(CLASS)
        jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # spark-submit may have looked for jars with the other class
    except Exception:
        logger.info("Spark starts chmod for each file that it creates", exc_info=True)
        return {}
    return dict(CONF)


def class_directory() -> Path:
    """Return the directory for the compiled class, which other versions of the source do not use."""
    return cache_directory(os.environ) / f"java-{hashlib.sha256(SOURCE.encode()).hexdigest()[:16]}"


def _compile(jvm: Any, loader: Any, directory: Path) -> Path:
    """Return `directory` with the compiled class in it, or a temporary one if it cannot be created."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(SOURCE)
    made = Path(tempfile.mkdtemp(prefix="sskafka-java-"))
    for name, code in compiler.getBytecodes().items():
        file = made.joinpath(*name.split(".")).with_suffix(".class")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(code))
    with suppress(OSError):
        directory.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=directory.parent))
        shutil.copytree(made, beside, dirs_exist_ok=True)
        beside.rename(directory)  # fails if another process was faster, which does no harm
    return directory if directory.exists() else made
