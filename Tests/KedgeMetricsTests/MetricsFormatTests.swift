import KedgeMetrics
import Testing

struct MetricsFormatTests {
    @Test(arguments: [
        // Prometheus 2.42, and a version that also knows names in UTF-8.
        """
        application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
        q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1
        """,
        """
        application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
        application/openmetrics-text;version=0.0.1;q=0.4,\
        text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1
        """,
        "application/openmetrics-text",
        "APPLICATION/OpenMetrics-Text ; Version=1.0.0 ; Q=0.1",
        "application/openmetrics-text, text/plain",
        "text/plain;q=0.2, application/openmetrics-text;q=0.3",
    ])
    func `a client that prefers OpenMetrics gets it`(accept: String) {
        #expect(MetricsFormat(accept: accept) == .openMetrics)
    }

    @Test(
        arguments: [
            nil, "", "*/*", "text/*", "text/plain", "text/html,application/xhtml+xml,*/*;q=0.8",
            "application/json",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=0.4, text/plain;q=0.5",
            "application/openmetrics-text;q=0.4, */*",
            "application/openmetrics-text;q=nan", "application/openmetrics-text;q=",
            "application/openmetrics-text;q=-1", "application/openmetrics-text;q=2",
            ",;,=;q", ";", ",",
        ] as [String?])
    func `every other client gets the format of Prometheus`(accept: String?) {
        #expect(MetricsFormat(accept: accept) == .prometheusText)
    }

    @Test func `a text/plain of another version does not count`() {
        let accept = "application/openmetrics-text;q=0.5, text/plain;version=1.0.0;q=0.9"
        #expect(MetricsFormat(accept: accept) == .openMetrics)
    }

    @Test func `the media type of a format has its version`() {
        #expect(
            MetricsFormat.allCases.map(\.contentType) == [
                "text/plain; version=0.0.4; charset=utf-8",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ])
    }
}
