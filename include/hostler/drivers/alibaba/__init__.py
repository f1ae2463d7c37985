"""Alibaba Cloud."""
