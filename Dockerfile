# By its digest: docs/deploy.md.
ARG PYTHON_IMAGE=python:3.13-slim-trixie

# The packages, with their hashes, and without those that only `make run` needs.
FROM ${PYTHON_IMAGE} AS packages
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /srv/memory
COPY requirements.txt requirements-tracing.txt requirements-s3.txt ./
# true: with the packages for traces.
ARG TRACING=false
# true: with the packages for files of messages in a bucket.
ARG S3=false
RUN python -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install --require-hashes --no-deps -r requirements.txt \
    && if [ "$TRACING" = true ]; then \
        /opt/venv/bin/python -m pip install --require-hashes --no-deps -r requirements-tracing.txt; fi \
    && if [ "$S3" = true ]; then \
        /opt/venv/bin/python -m pip install --require-hashes --no-deps -r requirements-s3.txt; fi \
    && /opt/venv/bin/python -m pip uninstall --yes supervisor \
    && /opt/venv/bin/python -m pip uninstall --yes pip

FROM ${PYTHON_IMAGE}
# The user that runs everything, and the folders that it may write to.
RUN groupadd --gid 10001 memory \
    && useradd --uid 10001 --gid memory --home-dir /var/lib/memory --create-home memory \
    && install --directory --owner memory --group memory --mode 700 \
        /var/lib/memory/data /backups
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=memoryproject.settings \
    DATA_DIR=/var/lib/memory/data \
    LOG_DIR=/var/lib/memory/data/logs
WORKDIR /srv/memory
COPY --from=packages /opt/venv /opt/venv
COPY manage.py LICENSE ./
COPY memoryproject memoryproject
COPY sessions_app sessions_app
COPY memories_app memories_app
COPY cards_app cards_app
COPY templates templates
COPY deploy deploy
USER 10001:10001
# The keys, the logs with the audit log's file, and the files of messages.
VOLUME /var/lib/memory/data
EXPOSE 8000
# For the web servers; compose.yaml has none for the workers.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "deploy/healthcheck.py"]
# The signal on which gunicorn and qcluster finish what they have.
STOPSIGNAL SIGTERM
CMD ["gunicorn", "--config", "deploy/gunicorn.conf.py"]
