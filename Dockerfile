# One image for both processes: the gateway (the default command) and the worker (`python -P -m worker`).
FROM python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254 AS build
RUN pip install --no-cache-dir uv==0.13.8
ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_PROJECT_ENVIRONMENT=/opt/edgewright \
    UV_PYTHON_DOWNLOADS=never
WORKDIR /src
# Dependencies change seldom: their layer is kept while only our own code changes.
COPY pyproject.toml uv.lock ./
RUN uv sync --frozen --no-dev --no-install-project
COPY LICENSE README.md worker.py ./
COPY charts charts
COPY activities activities
COPY api api
COPY workflows workflows
COPY edgewright edgewright
RUN uv sync --frozen --no-dev --no-editable

FROM python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254
# git serves the driving repositories; ca-certificates verifies what the worker calls.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/edgewright --create-home edgewright
COPY --from=build /opt/edgewright /opt/edgewright
ENV PATH=/opt/edgewright/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    EDGEWRIGHT_HOME=/var/lib/edgewright \
    EDGEWRIGHT_BIND=0.0.0.0 \
    EDGEWRIGHT_GATEWAY_PORT=8484
USER 10001:10001
WORKDIR /var/lib/edgewright
VOLUME /var/lib/edgewright
EXPOSE 8484
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8484/healthz', timeout=2)"]
# -P: a file in the volume must not be imported in place of a module.
CMD ["python", "-P", "-m", "api"]
