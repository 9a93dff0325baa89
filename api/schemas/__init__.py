"""The bodies of requests and answers, by word."""
