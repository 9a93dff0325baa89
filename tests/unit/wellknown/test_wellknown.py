"""UUIDs that others rely on, and which objects an Application takes."""

from uuid import UUID, uuid4

from edgewright.domain import wellknown as wk


def test_every_constant_is_a_uuid_of_its_own() -> None:
    aliases = {"OBJECT_FLUX_TEMPLATE", "OBJECT_BOOTSTRAP_SCRIPT", "OBJECT_FLUX_BUNDLE"}
    constants = {name: value for name, value in vars(wk).items() if isinstance(value, UUID) and name not in aliases}
    assert len(constants) > 30
    assert len(set(constants.values())) == len(constants)


def test_our_own_uuids_never_change() -> None:
    assert str(wk.APP_CLUSTER_SETTINGS) == "020f8fa8-2079-43e8-94e9-3bf0e60f449a"
    assert str(wk.APP_FLUX_BUNDLE) == "00aa45b5-ff6e-4289-b96a-3721e69955ee"
    assert str(wk.OBJECT_DEFAULT_CHART) == "75cbe268-07c5-46e8-a05f-19cf309bb8f6"
    assert str(wk.REPOSITORY_HELM_CHARTS) == "89b6152c-eae2-4872-8da6-1f1dc04aa2e2"


def test_entries_about_clusters_take_edge_clusters_only() -> None:
    for app in (
        wk.APP_CLUSTER_CONFIGURATION,
        wk.APP_CLUSTER_SETUP_STATUS,
        wk.APP_CLUSTER_STATUS,
        wk.APP_CLUSTER_SETTINGS,
        wk.APP_SPARKPLUG_ADDRESS,
        wk.APP_GIT_REPOSITORY,
    ):
        assert wk.allows_class(app, wk.CLASS_EDGE_CLUSTER)
        assert not wk.allows_class(app, wk.CLASS_EDGE_ACCOUNT)


def test_other_applications_take_objects_of_any_class() -> None:
    assert wk.allows_class(wk.APP_OBJECT_INFO, uuid4())
    assert wk.allows_class(uuid4(), wk.CLASS_EDGE_CLUSTER)


def test_a_repository_that_belongs_to_no_cluster_may_be_configured() -> None:
    assert wk.allows_class(wk.APP_GIT_REPOSITORY, wk.CLASS_GIT_REPOSITORY)
