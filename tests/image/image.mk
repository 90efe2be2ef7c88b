# The container image, built and run by an engine: buildah and podman.
.PHONY: image-test

image-test: $(STAMP) ## Build the container image and use it from outside (needs root and Debian's buildah, podman, runc, debootstrap)
	$(BIN)/python -m pytest -q tests/image --log-cli-level INFO --timeout 3600 $(PYTEST_OPTIONS)
