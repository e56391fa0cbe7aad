import KedgeMetrics
import KedgeTesting
import Testing

struct MetricCollectorsTests {
    @Test func `collected gauges and counters are in the text`() async {
        let metrics = Metrics()
        metrics.addCollector {
            [MetricSample(.buildInfo, 1, ["3"]), MetricSample(.connections, 7)]
        }
        metrics.addCollector { [MetricSample(.scrubbedBytes, 4096)] }
        let text = await metrics.text(.prometheusText)
        #expect(text.contains("\nkedge_build_info{version=\"3\"} 1\n"))
        #expect(text.contains("\nkedge_connections 7\n"))
        #expect(text.contains("\nkedge_scrub_bytes_total 4096\n"))
    }

    @Test func `collected samples replace the recorded values of their metric`() async {
        let metrics = Metrics()
        metrics.increment(.scrubbedBlobs, by: 1, ["verified"])
        metrics.increment(.scrubbedBlobs, by: 1, ["damaged"])
        metrics.addCollector {
            [
                MetricSample(.scrubbedBlobs, 2, ["verified"]),
                MetricSample(.scrubbedBlobs, 5, ["verified"]),
            ]
        }
        let samples = await metrics.text(.prometheusText).split(separator: "\n")
            .filter { $0.hasPrefix("kedge_scrub_blobs_total{") }
        #expect(samples == [#"kedge_scrub_blobs_total{result="verified"} 5"#])
    }

    @Test func `scrapes within ten seconds share one collection`() async {
        let (time, calls) = (Shared(ContinuousClock.now), Shared(0))
        let metrics = Metrics(now: { time.value })
        metrics.addCollector {
            let count = calls.increment()
            return [MetricSample(.connections, Double(count))]
        }
        for (pause, expected) in [(0, 1), (9, 1), (1, 2), (9, 2), (30, 3)] {
            time.update { $0 = $0.advanced(by: .seconds(pause)) }
            let text = await metrics.text(.openMetrics)
            #expect(text.contains("\nkedge_connections \(expected)\n"))
        }
    }

    @Test func `a value that a collector leaves out disappears`() async {
        let (time, isUp) = (Shared(ContinuousClock.now), Shared(true))
        let metrics = Metrics(now: { time.value })
        metrics.addCollector { isUp.value ? [MetricSample(.damagedBlobs, 1)] : [] }
        #expect(await metrics.text(.prometheusText).contains("\nkedge_damaged_blobs 1\n"))
        isUp.update { $0 = false }
        time.update { $0 = $0.advanced(by: .seconds(10)) }
        #expect(await !metrics.text(.prometheusText).contains("kedge_damaged_blobs"))
    }

    @Test(.timeLimit(.minutes(1)))
    func `a scrape does not wait for the collection of another`() async {
        let (time, calls) = (Shared(ContinuousClock.now), Shared(0))
        let (entered, mayEnd) = (Gate(), Gate())
        let metrics = Metrics(now: { time.value })
        metrics.addCollector {
            let count = calls.increment()
            if count == 2 {
                entered.open()
                await mayEnd.wait()
            }
            return [MetricSample(.connections, Double(count))]
        }
        #expect(await metrics.text(.prometheusText).contains("\nkedge_connections 1\n"))
        time.update { $0 = $0.advanced(by: .seconds(60)) }
        async let slow = metrics.text(.prometheusText)
        await entered.wait()
        #expect(await metrics.text(.prometheusText).contains("\nkedge_connections 1\n"))
        mayEnd.open()
        let late = await slow
        #expect(late.contains("\nkedge_connections 2\n"))
        #expect(await metrics.text(.prometheusText).contains("\nkedge_connections 2\n"))
    }
}
