from sskafka.servers.http.prometheus import exposition


def test_samples_of_a_name_stand_together_under_its_type() -> None:
    samples = [
        ("requests_total", [("request", "Fetch")], 3),
        ("memory_bytes", [], 1.5),
        ("requests_total", [("request", "Produce")], 4.0),
    ]
    assert exposition(samples) == (
        "# TYPE requests_total counter\n"
        'requests_total{request="Fetch"} 3\n'
        'requests_total{request="Produce"} 4\n'
        "# TYPE memory_bytes gauge\n"
        "memory_bytes 1.5\n"
    )


def test_label_values_are_escaped() -> None:
    assert exposition([("x", [("path", 'a"b\\c\nd')], 1)]) == '# TYPE x gauge\nx{path="a\\"b\\\\c\\nd"} 1\n'


def test_nothing_counted_is_an_empty_page() -> None:
    assert exposition([]) == ""
