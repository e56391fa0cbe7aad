import KedgeMetrics
import Testing

struct MetricsTextTests {
    /// The lines about one metric, without those of others.
    private func lines(
        about name: String, in metrics: Metrics, _ format: MetricsFormat
    ) async -> String {
        await metrics.text(format).split(separator: "\n").filter { $0.contains(name) }
            .joined(separator: "\n")
    }

    @Test func `a counter and a gauge in the format of Prometheus`() async {
        let metrics = Metrics()
        metrics.increment(.uploadBytes, by: 4_194_304, ["tus"])
        metrics.increment(.uploadBytes, by: 10, ["native"])
        metrics.increment(.uploadBytes, by: 32, ["native"])
        metrics.set(.storageFreeBytes, to: 1e15)
        let counter = await lines(about: "kedge_upload_bytes", in: metrics, .prometheusText)
        #expect(
            counter == """
                # HELP kedge_upload_bytes_total Bytes of bodies of uploads that were received.
                # TYPE kedge_upload_bytes_total counter
                kedge_upload_bytes_total{protocol="native"} 42
                kedge_upload_bytes_total{protocol="tus"} 4194304
                """)
        let gauge = await lines(about: "kedge_storage_free_bytes", in: metrics, .prometheusText)
        #expect(
            gauge == """
                # HELP kedge_storage_free_bytes Bytes that are free for uploads where bytes \
                are kept or spooled.
                # TYPE kedge_storage_free_bytes gauge
                kedge_storage_free_bytes 1000000000000000
                """)
    }

    @Test func `a counter and a gauge in OpenMetrics`() async {
        let metrics = Metrics()
        metrics.increment(.uploadBytes, by: 42, ["native"])
        metrics.increment(.errors, ["BUSY"])
        metrics.set(.processStartTime, to: 1_700_000_000.25)
        let counter = await lines(about: "kedge_upload_bytes", in: metrics, .openMetrics)
        #expect(
            counter == """
                # TYPE kedge_upload_bytes counter
                # UNIT kedge_upload_bytes bytes
                # HELP kedge_upload_bytes Bytes of bodies of uploads that were received.
                kedge_upload_bytes_total{protocol="native"} 42
                """)
        let withoutUnit = await lines(about: "kedge_errors", in: metrics, .openMetrics)
        #expect(
            withoutUnit == """
                # TYPE kedge_errors counter
                # HELP kedge_errors Responses with an error, by its code.
                kedge_errors_total{code="BUSY"} 1
                """)
        let gauge = await lines(about: "process_start_time", in: metrics, .openMetrics)
        #expect(
            gauge == """
                # TYPE process_start_time_seconds gauge
                # UNIT process_start_time_seconds seconds
                # HELP process_start_time_seconds Unix time at which the process started.
                process_start_time_seconds 1700000000.25
                """)
    }

    /// The samples of the histogram are equal in both formats.
    private static let requestSamples = """
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="0.005"} 1
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="0.01"} 1
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="0.025"} 2
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="0.05"} 2
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="0.1"} 2
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="0.25"} 3
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="0.5"} 3
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="1.0"} 3
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="2.5"} 3
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="5.0"} 3
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="10.0"} 3
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="30.0"} 3
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="60.0"} 3
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="300.0"} 3
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="1800.0"} 3
        kedge_http_request_seconds_bucket{method="POST",route="/tus",protocol="tus",le="+Inf"} 4
        kedge_http_request_seconds_sum{method="POST",route="/tus",protocol="tus"} 6000.27
        kedge_http_request_seconds_count{method="POST",route="/tus",protocol="tus"} 4
        """

    private func metricsWithHistogram() -> Metrics {
        let metrics = Metrics()
        // A wall clock that was set back, a value between bounds, a bound, and more than all.
        for seconds in [-3, 0.02, 0.25, 6000] {
            metrics.observe(.httpRequestSeconds, seconds: seconds, ["POST", "/tus", "tus"])
        }
        return metrics
    }

    @Test func `a histogram in the format of Prometheus`() async {
        let metrics = metricsWithHistogram()
        let text = await lines(about: "kedge_http_request_seconds", in: metrics, .prometheusText)
        #expect(
            text == """
                # HELP kedge_http_request_seconds Time from the head of a request \
                until its response begins; uploads include their body.
                # TYPE kedge_http_request_seconds histogram

                """ + Self.requestSamples)
    }

    @Test func `a histogram in OpenMetrics`() async {
        let metrics = metricsWithHistogram()
        let text = await lines(about: "kedge_http_request_seconds", in: metrics, .openMetrics)
        #expect(
            text == """
                # TYPE kedge_http_request_seconds histogram
                # UNIT kedge_http_request_seconds seconds
                # HELP kedge_http_request_seconds Time from the head of a request \
                until its response begins; uploads include their body.

                """ + Self.requestSamples)
    }

    @Test func `only OpenMetrics ends with a mark, and both end with a line end`() async {
        let metrics = Metrics()
        metrics.set(.connections, to: 1)
        let open = await metrics.text(.openMetrics)
        let plain = await metrics.text(.prometheusText)
        #expect(open.hasSuffix("\n# EOF\n"))
        #expect(open.split(separator: "\n").filter { $0 == "# EOF" }.count == 1)
        #expect(!plain.contains("EOF"))
        #expect(plain.hasSuffix("\n") && !plain.hasSuffix("\n\n"))
    }

    @Test func `metrics without a value are left out, but not counters that need no label`() async {
        let text = await Metrics().text(.prometheusText)
        #expect(text.contains("\nkedge_download_bytes_total 0\n"))
        #expect(text.contains("\nkedge_scrub_bytes_total 0\n"))
        #expect(!text.contains("kedge_upload_bytes_total"))
        #expect(!text.contains("kedge_http_request_seconds"))
        #expect(!text.contains("kedge_storage_free_bytes"))
    }

    @Test func `label values are escaped`() async {
        let metrics = Metrics()
        metrics.increment(.errors, ["a\"b\\c\nd\r\né,}"])
        for format in MetricsFormat.allCases {
            let text = await metrics.text(format)
            let sample = #"kedge_errors_total{code="a\"b\\c\nd"# + "\r" + #"\né,}"} 1"#
            #expect(text.contains(sample + "\n"))
        }
    }

    @Test(
        arguments: [
            (0, "0"), (-0.0, "0"), (-12, "-12"), (0.5, "0.5"), (1e-7, "1e-07"),
            (9_007_199_254_740_991, "9007199254740991"), (1e18, "1e+18"),
            (.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN"),
        ] as [(Double, String)])
    func `a number is written as Prometheus reads it`(value: Double, text: String) async {
        let metrics = Metrics()
        metrics.set(.connections, to: value)
        #expect(await metrics.text(.prometheusText).contains("\nkedge_connections \(text)\n"))
    }

    @Test func `metrics have the order of the table, and series that of their labels`() async {
        let metrics = Metrics()
        metrics.increment(.scrubbedBlobs, ["verified"])
        metrics.increment(.errors, ["BUSY"])
        for labels in [["PUT", "5xx"], ["PUT", "2xx"], ["GET", "5xx"]] {
            metrics.increment(.httpRequests, [labels[0], "/a", "native", labels[1]])
        }
        let text = await metrics.text(.prometheusText)
        let requests = "kedge_http_requests_total"
        let samples = text.split(separator: "\n").filter {
            $0.hasPrefix(requests) || $0.hasPrefix("kedge_errors")
                || $0.hasPrefix("kedge_scrub_blobs")
        }.map(String.init)
        let expected: [String] = [
            requests + #"{method="GET",route="/a",protocol="native",status="5xx"} 1"#,
            requests + #"{method="PUT",route="/a",protocol="native",status="2xx"} 1"#,
            requests + #"{method="PUT",route="/a",protocol="native",status="5xx"} 1"#,
            #"kedge_errors_total{code="BUSY"} 1"#,
            #"kedge_scrub_blobs_total{result="verified"} 1"#,
        ]
        #expect(samples == expected)
        let described = text.split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }
            .map { String($0.split(separator: " ")[2]) }
        let names = MetricName.allCases.map(\.definition.name)
        #expect(described == names.filter { described.contains($0) })
    }
}
