# One broker. Built in two steps, so that what is only needed to build stays out of the image.
#
#   docker build -t sskafka .
#   docker run -p 9092:9092 sskafka           # clients on this machine connect to localhost:9092
#   docker run -p 9092:9092 -e SSKAFKA_ADVERTISED_LISTENERS=PLAINTEXT://my-host:9092 sskafka
#
# A client asks any broker for the addresses of all of them and then connects to those: what a broker advertises must be
# an address at which clients reach it. docs/deploy.md explains the listeners of containers.
FROM python:3.11-slim AS build
WORKDIR /source
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null \
    && rm -rf /var/lib/apt/lists/* \
    && python -m venv --without-pip /opt/sskafka
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY build_tools ./build_tools
COPY src ./src
# pip also writes bytecode: the user of the broker may not write here, and every start would compile all sources again.
# Some wheels have symbols for debuggers in their libraries, uvloop's 12 MB.
RUN python -m pip --python /opt/sskafka/bin/python install --no-cache-dir --disable-pip-version-check \
    -c constraints.txt '.[fast]' \
    && find /opt/sskafka -name '*.so' -exec strip --strip-unneeded {} +

FROM python:3.11-slim
RUN useradd --system --create-home --home-dir /var/lib/sskafka --uid 10001 sskafka \
    && mkdir /data /metadata \
    && chown sskafka:sskafka /data /metadata
COPY --from=build /opt/sskafka /opt/sskafka
COPY --chown=sskafka:sskafka deploy/container.properties /var/lib/sskafka/server.properties
ENV PATH=/opt/sskafka/bin:$PATH \
    SSKAFKA_LOG_DIRS=/data \
    SSKAFKA_METADATA_LOG_DIR=/metadata
USER sskafka
WORKDIR /var/lib/sskafka
VOLUME ["/data", "/metadata"]
EXPOSE 9092 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=6 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://localhost:8080/readyz', timeout=2)"]
STOPSIGNAL SIGTERM
CMD ["sskafka", "start", "/var/lib/sskafka/server.properties"]
