"""Serves the gateway configuration of edgewright with nginx."""
