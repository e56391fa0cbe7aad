import KedgeMetrics
import Testing

struct MetricNameTests {
    /// The grammar of names of metrics and, without the colon, of labels.
    private static func isName(_ text: String) -> Bool {
        text.wholeMatch(of: /[a-z][a-z0-9_]*[a-z0-9]/) != nil && !text.contains("__")
    }

    @Test func `every case has its own row in the table`() {
        #expect(MetricName.allCases.map(\.definition.metric) == MetricName.allCases)
    }

    @Test func `no two metrics share a name`() {
        let names = MetricName.allCases.map(\.definition.name)
        #expect(Set(names).count == names.count)
    }

    /// The names that OpenMetrics gives to a metric and to its samples.
    private static func namesInOpenMetrics(_ definition: MetricDefinition) -> [String] {
        let family =
            definition.type == .counter
            ? String(definition.name.dropLast("_total".count)) : definition.name
        let suffixes: [String] =
            switch definition.type {
            case .counter: ["", "_total", "_created"]
            case .gauge: [""]
            case .histogram: ["", "_bucket", "_sum", "_count", "_created"]
            }
        return suffixes.map { family + $0 }
    }

    @Test func `no sample of a metric has the name of another metric`() {
        let names = MetricName.allCases.flatMap { Self.namesInOpenMetrics($0.definition) }
        #expect(Set(names).count == names.count)
    }

    @Test(arguments: MetricName.allCases)
    func `a metric has a valid name with the prefix of the program or of processes`(
        metric: MetricName
    ) {
        let name = metric.definition.name
        #expect(Self.isName(name))
        #expect(name.hasPrefix("kedge_") || name.hasPrefix("process_"))
    }

    @Test(arguments: MetricName.allCases)
    func `counters and only counters end in _total`(metric: MetricName) {
        let definition = metric.definition
        #expect(definition.name.hasSuffix("_total") == (definition.type == .counter))
    }

    @Test(arguments: MetricName.allCases)
    func `the name of a metric ends in its unit`(metric: MetricName) {
        let definition = metric.definition
        let suffix = definition.type == .counter ? "_total" : ""
        for unit in [MetricUnit.bytes, .seconds] {
            let hasName = definition.name.hasSuffix("_\(unit.rawValue)\(suffix)")
            #expect(hasName == (definition.unit == unit))
        }
    }

    @Test(arguments: MetricName.allCases)
    func `labels have valid names, and none that Prometheus sets itself`(metric: MetricName) {
        let names = metric.definition.labelNames
        #expect(names.allSatisfy(Self.isName))
        #expect(Set(names).count == names.count)
        #expect(Set(names).isDisjoint(with: ["le", "quantile", "job", "instance"]))
    }

    @Test(arguments: MetricName.allCases)
    func `no label can name a user or a file`(metric: MetricName) {
        let names = Set(metric.definition.labelNames)
        #expect(names.isDisjoint(with: ["owner", "id", "path", "file", "address", "dialect"]))
    }

    @Test(arguments: MetricName.allCases)
    func `the help is one sentence`(metric: MetricName) {
        let help = metric.definition.help
        #expect(help.hasSuffix("."))
        #expect(help.filter { $0 == "." }.count == 1)
        #expect(!help.contains("\n") && !help.contains("|"))
    }

    @Test(arguments: MetricName.allCases)
    func `histograms and only histograms have buckets, in ascending order`(metric: MetricName) {
        let definition = metric.definition
        let bounds = definition.buckets
        #expect(bounds.isEmpty == (definition.type != .histogram))
        #expect(zip(bounds, bounds.dropFirst()).allSatisfy { $0 < $1 })
        #expect(bounds.allSatisfy { $0.isFinite && $0 > 0 })
        // An exponent would be another text for Prometheus than the same number without one.
        #expect(!bounds.contains { "\($0)".contains("e") })
    }
}
