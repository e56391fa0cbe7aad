import KedgeMetrics
import KedgeTesting
import Testing

struct MetricsTests {
    /// The value of a sample, by its name with its labels.
    private func value(of sample: String, in text: String) -> Double? {
        let line = text.split(separator: "\n").first { $0.hasPrefix(sample + " ") }
        return line.flatMap { Double($0.dropFirst(sample.count + 1)) }
    }

    @Test func `a gauge rises and falls`() async {
        let metrics = Metrics()
        metrics.increment(.httpRequestsInFlight)
        metrics.increment(.httpRequestsInFlight, by: 2)
        metrics.increment(.httpRequestsInFlight, by: -1)
        let text = await metrics.text(.prometheusText)
        #expect(value(of: "kedge_http_requests_in_flight", in: text) == 2)
    }

    @Test func `an increment by zero makes a counter visible`() async {
        let metrics = Metrics()
        metrics.increment(.errors, by: 0, ["BUSY"])
        let text = await metrics.text(.prometheusText)
        #expect(value(of: #"kedge_errors_total{code="BUSY"}"#, in: text) == 0)
    }

    @Test func `a metric keeps a thousand series, and the rest counts as other`() async {
        let warnings = Shared<[MetricName]>([])
        let metrics = Metrics(onOverflow: { name in warnings.update { $0.append(name) } })
        for index in 0..<1100 {
            metrics.increment(.httpRequests, by: 2, ["GET", "/\(index)", "native", "2xx"])
        }
        metrics.increment(.httpRequests, by: 5, ["GET", "/0", "native", "2xx"])
        let text = await metrics.text(.prometheusText)
        let name = "kedge_http_requests_total"
        let samples = text.split(separator: "\n").filter { $0.hasPrefix(name + "{") }
        #expect(samples.count == 1000)
        // Every series but one has a combination of its own.
        let rest = #"{method="other",route="other",protocol="other",status="other"}"#
        #expect(value(of: name + rest, in: text) == 202)
        // A series that exists still counts.
        let first = #"{method="GET",route="/0",protocol="native",status="2xx"}"#
        #expect(value(of: name + first, in: text) == 7)
        #expect(warnings.value == [.httpRequests])
    }

    @Test func `the bound of one metric does not touch another, which warns by itself`() async {
        let warnings = Shared<[MetricName]>([])
        let metrics = Metrics(onOverflow: { name in warnings.update { $0.append(name) } })
        for index in 0..<1001 {
            metrics.increment(.errors, ["code\(index)"])
            metrics.observe(.httpRequestSeconds, seconds: 1, ["GET", "/\(index)", "native"])
        }
        metrics.set(.connections, to: 4)
        let text = await metrics.text(.prometheusText)
        #expect(value(of: "kedge_connections", in: text) == 4)
        let rest = #"{method="other",route="other",protocol="other"}"#
        #expect(value(of: "kedge_http_request_seconds_count" + rest, in: text) == 2)
        #expect(warnings.value == [.errors, .httpRequestSeconds])
    }

    @Test func `an overflow may be recorded by its receiver`() async {
        // The receiver needs the recorder that calls it.
        let recorder = Shared<Metrics?>(nil)
        let metrics = Metrics(onOverflow: { name in
            recorder.value?.increment(name, ["warned"])
        })
        recorder.update { $0 = metrics }
        for index in 0..<1000 { metrics.increment(.errors, ["code\(index)"]) }
        recorder.update { $0 = nil }
        let text = await metrics.text(.prometheusText)
        #expect(value(of: #"kedge_errors_total{code="other"}"#, in: text) == 2)
    }

    @Test(.timeLimit(.minutes(1)))
    func `no scrape sees half of an observation while others record`() async {
        let metrics = Metrics()
        let (taskCount, observationCount) = (8, 5000)
        let name = "kedge_http_request_seconds"
        let labels = #"method="GET",route="/",protocol="native""#
        await withTaskGroup { group in
            for _ in 0..<taskCount {
                group.addTask {
                    for _ in 0..<observationCount {
                        metrics.observe(
                            .httpRequestSeconds, seconds: 0.5, ["GET", "/", "native"])
                        metrics.increment(.downloadBytes, by: 3)
                    }
                }
            }
            for _ in 0..<50 {
                let text = await metrics.text(.prometheusText)
                let count = value(of: "\(name)_count{\(labels)}", in: text)
                for bound in ["+Inf", "0.5"] {
                    let bucket = "\(name)_bucket{\(labels),le=\"\(bound)\"}"
                    #expect(value(of: bucket, in: text) == count)
                }
                // Half a second is exact, so sums of it are, too.
                #expect(
                    value(of: "\(name)_sum{\(labels)}", in: text) == count.map { $0 * 0.5 })
            }
        }
        let text = await metrics.text(.prometheusText)
        let total = Double(taskCount * observationCount)
        #expect(value(of: "\(name)_count{\(labels)}", in: text) == total)
        #expect(value(of: "kedge_download_bytes_total", in: text) == 3 * total)
    }
}
