/// One line of the table: the measured value beside the values to compare it with.
struct Row: Sendable {
    /// A stable name, by which targets and readers of the JSON file find it.
    let id: String
    let title: String
    let unit: Unit
    let ours: Series
    var peer: Series?
    var floor: Floor?

    /// Units of values.
    enum Unit: String, Encodable, Sendable {
        case mebibytesPerSecond = "MiB/s"
        case perSecond = "1/s"
        case cpuSecondsPerGiB = "CPU s/GiB"
        case seconds = "s"
        case milliseconds = "ms"
        case mebibytes = "MiB"
        case kibibytes = "KiB"
        case count = "count"
        case timesFile = "x file"
    }

    /// The best possible value, from a measurement of the same run.
    struct Floor: Encodable, Sendable {
        let value: Double
        /// The computation of the value, with the numbers.
        let formula: String
    }

    /// Our median in relation to the peer's.
    var ratio: Double? { peer.map { ours.median / $0.median } }

    /// Our median in relation to the floor.
    var floorRatio: Double? { floor.map { ours.median / $0.value } }

    /// - Parameter name: The measured program.
    init(
        _ id: String, _ title: String, _ unit: Unit, _ values: [Double], name: String = "kedge",
        peer: Series? = nil, floor: Floor? = nil
    ) {
        self.id = id
        self.title = title
        self.unit = unit
        ours = Series(name: name, values: values)
        self.peer = peer
        self.floor = floor
    }
}
