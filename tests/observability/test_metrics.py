"""What Prometheus gets from a running gateway and worker."""

import re

import httpx
from loopback import PLAIN
from prometheus_client.parser import text_string_to_metric_families
from supervised import eventually
from watched import NAME, Watched


def value(text: str, name: str, **labels: str) -> float | None:
    """The sum of all samples with that name and at least those labels; None without any."""
    found = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return sum(found) if found else None


def test_commissioning_time_is_measured_by_the_worker(watched: Watched) -> None:
    eventually(lambda: value(watched.worker_metrics(), "edgewright_commissioning_seconds_count"))
    text = watched.worker_metrics()
    assert value(text, "edgewright_commissioning_seconds_count") == 1
    assert 0 < (value(text, "edgewright_commissioning_seconds_sum") or 0) < 60


def test_queue_lag_is_measured_for_each_queue(watched: Watched) -> None:
    text = watched.worker_metrics()
    activities = "temporal_activity_schedule_to_start_latency_seconds_count"
    for queue in ("edgewright-clusters", "edgewright-bulk"):
        assert value(text, activities, task_queue=queue)
    tasks = "temporal_workflow_task_schedule_to_start_latency_seconds_count"
    assert value(text, tasks, task_queue="edgewright-clusters")


def test_git_and_sealing_are_timed(watched: Watched) -> None:
    assert value(watched.worker_metrics(), "edgewright_git_seconds_count", operation="commit")
    gateway = watched.gateway_metrics()
    assert value(gateway, "edgewright_seal_seconds_count") == 1
    assert value(gateway, "edgewright_git_seconds_count", operation="head")


def test_the_worker_tells_how_long_single_tasks_hold_its_loop(watched: Watched) -> None:
    text = watched.worker_metrics()
    assert value(text, "edgewright_event_loop_held_seconds_count")
    assert value(text, "edgewright_event_loop_held_seconds_sum")


def test_requests_are_counted_by_route_and_status(watched: Watched) -> None:
    text = watched.gateway_metrics()
    assert value(text, "edgewright_http_requests_total", method="POST", route="/v1/cluster", status="201") == 1


def test_fleet_is_counted_from_the_database(watched: Watched) -> None:
    eventually(lambda: value(watched.gateway_metrics(), "edgewright_clusters", phase="Active") == 1, seconds=60)
    text = watched.gateway_metrics()
    assert value(text, "edgewright_steps_failing") == 0
    assert value(text, "edgewright_reachable") == len(("database", "temporal"))


def test_metrics_name_no_cluster_whoever_serves_them(watched: Watched) -> None:
    with_token = watched.ask("metrics", "GET", "/metrics").text
    for text in (watched.gateway_metrics(), watched.worker_metrics(), with_token):
        assert value(text, "edgewright_git_seconds_count")
        assert NAME not in text
        assert re.findall(r"[0-9a-f]{8}-[0-9a-f]{4}-", text) == []


def test_metrics_need_a_token_on_the_gateways_own_port(watched: Watched) -> None:
    url = f"{watched.centre.endpoints()['gateway']}/metrics"
    assert httpx.get(url, **PLAIN, timeout=30).status_code == 401


def test_open_port_serves_metrics_and_nothing_else(watched: Watched) -> None:
    base = f"http://127.0.0.1:{watched.metrics_port}"
    assert httpx.get(f"{base}/v1/cluster", **PLAIN, timeout=30).status_code == 404
    assert httpx.post(f"{base}/metrics", **PLAIN, timeout=30).status_code == 405
