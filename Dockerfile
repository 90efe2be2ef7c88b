# One broker. Built in two steps, so that what is only needed to build stays out of the image.
FROM python:3.11-slim AS build
WORKDIR /source
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null \
    && python -m venv /opt/sskafka
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY build_tools ./build_tools
COPY src ./src
RUN /opt/sskafka/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt '.[fast]'

FROM python:3.11-slim
RUN useradd --system --create-home --home-dir /var/lib/sskafka --uid 10001 sskafka \
    && mkdir /data /metadata \
    && chown sskafka:sskafka /data /metadata
COPY --from=build /opt/sskafka /opt/sskafka
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
CMD ["sskafka", "start"]
