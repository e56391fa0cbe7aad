import KedgeMetrics
import KedgeTesting
import Testing

struct MetricCollectorsTests {
    @Test func `collected gauges and counters are in the text`() async {
        let metrics = Metrics()
        metrics.addCollector {
            [MetricSample(.sessions, 3, ["open"]), MetricSample(.connections, 7)]
        }
        metrics.addCollector { [MetricSample(.scrubbedBytes, 4096)] }
        let text = await metrics.text(.prometheusText)
        #expect(text.contains("\nkedge_sessions{state=\"open\"} 3\n"))
        #expect(text.contains("\nkedge_connections 7\n"))
        #expect(text.contains("\nkedge_scrub_bytes_total 4096\n"))
    }

    @Test func `collected samples replace the recorded values of their metric`() async {
        let metrics = Metrics()
        metrics.set(.sessions, to: 1, ["open"])
        metrics.set(.sessions, to: 1, ["expired"])
        metrics.addCollector {
            [MetricSample(.sessions, 2, ["open"]), MetricSample(.sessions, 5, ["open"])]
        }
        let samples = await metrics.text(.prometheusText).split(separator: "\n")
            .filter { $0.hasPrefix("kedge_sessions{") }
        #expect(samples == [#"kedge_sessions{state="open"} 5"#])
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
        metrics.addCollector { isUp.value ? [MetricSample(.garbageWaiting, 1)] : [] }
        #expect(await metrics.text(.prometheusText).contains("\nkedge_garbage_waiting 1\n"))
        isUp.update { $0 = false }
        time.update { $0 = $0.advanced(by: .seconds(10)) }
        #expect(await !metrics.text(.prometheusText).contains("kedge_garbage_waiting"))
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
