internal import KedgeLocks
internal import KedgeModel

/// The place of one body among those that are being written.
final class WritePlace: Sendable {
    private struct State {
        var writer: ActiveWriter?
        var isEvicted = false
    }

    let id: WriteAdmission.WriterID
    fileprivate let progress: BodyProgress?
    private let state = Mutex(State())

    fileprivate init(_ id: WriteAdmission.WriterID, progress: BodyProgress?) {
        self.id = id
        self.progress = progress
    }

    /// Sets the writer to interrupt on eviction. Interrupts it at once if the place was evicted
    /// before.
    func attach(_ writer: ActiveWriter) {
        let isEvicted = state.withLock { state in
            state.writer = writer
            return state.isEvicted
        }
        if isEvicted { writer.interrupt(.crowded) }
    }

    fileprivate func evict() {
        let writer = state.withLock { state in
            state.isEvicted = true
            return state.writer
        }
        writer?.interrupt(.crowded)
    }
}

/// Tracks the bodies that are being written; performs the decisions of ``WriteAdmission``.
final class WritePlaces: Sendable {
    /// Minimum time between two measurements of all bodies.
    private static let surveyInterval: Duration = .milliseconds(250)

    private struct Entry {
        let place: WritePlace
        /// The measurement from which the next pace is computed.
        var mark = BodyProgress.Measure()
    }

    private struct State {
        var admission: WriteAdmission
        var entries: [WriteAdmission.WriterID: Entry] = [:]
        var surveyedAt: Duration?
    }

    private let settings: EngineConfiguration
    private let start = ContinuousClock.now
    private let state: Mutex<State>

    init(_ settings: EngineConfiguration) {
        self.settings = settings
        state = Mutex(
            State(admission: WriteAdmission(placeCount: settings.maxConcurrentWrites)))
    }

    /// Number of bodies that are being written, including evicted ones.
    var count: Int { state.withLock { $0.entries.count } }

    /// Takes a place.
    ///
    /// - Throws: `BUSY` when there is none.
    func enter(_ arrival: WriteAdmission.Arrival, progress: BodyProgress?) throws -> WritePlace {
        let now = start.duration(to: .now)
        let (decision, place, evicted) = state.withLock { state in
            survey(&state, now)
            let decision = state.admission.arrive(arrival, at: now)
            let evicted = decision.evicted.compactMap { state.entries[$0]?.place }
            guard case .admitted(let id, _) = decision else {
                return (decision, nil as WritePlace?, evicted)
            }
            let place = WritePlace(id, progress: progress)
            state.entries[id] = Entry(place: place)
            return (decision, place, evicted)
        }
        for place in evicted { place.evict() }
        if let place { return place }
        if case .postponed = decision { throw EngineError.postponed }
        throw EngineError(.busy)
    }

    /// Marks the body as one that counts only when complete: stopping it would lose everything that
    /// its client sent.
    func hold(_ place: WritePlace) {
        state.withLock { $0.admission.hold(place.id) }
    }

    /// Releases a place.
    func leave(_ place: WritePlace, isWhole: Bool) {
        state.withLock { state in
            state.entries[place.id] = nil
            state.admission.depart(place.id, isWhole: isWhole)
        }
    }

    private func survey(_ state: inout State, _ now: Duration) {
        if let last = state.surveyedAt, now - last < Self.surveyInterval { return }
        state.surveyedAt = now
        for (id, entry) in state.entries {
            guard let measure = entry.place.progress?.measure else { continue }
            let waited = measure.waited - entry.mark.waited
            guard waited >= settings.slowBodyGrace else { continue }
            let bytes = Double(max(0, measure.byteCount - entry.mark.byteCount))
            let rate = Int64(bytes / (waited / .seconds(1)))
            state.entries[id]?.mark = measure
            state.admission.observe(
                id, rate < settings.slowBodyBytesPerSecond ? .slow(bytesPerSecond: rate) : .fast)
        }
    }
}
