# climseg in a container, by the same steps as scripts/setup: docker build -t climseg . && docker run climseg --help
# Files: docker run -v "$PWD":/data -w /data climseg predict checkpoint=... input='...' output=masks.nc
FROM python:3.11-slim
WORKDIR /opt/climseg
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY climseg climseg
COPY conf conf
RUN pip install --no-cache-dir --constraint constraints.txt '.[notebook]'
WORKDIR /data
ENTRYPOINT ["climseg"]
