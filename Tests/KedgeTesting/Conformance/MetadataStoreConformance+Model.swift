internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    private static let operationCount = 150
    /// Comparing everything costs a hundred queries.
    private static let operationsBetweenLooks = 25

    /// Every store answers any sequence of operations like the rows in memory, which are short
    /// enough to review.
    static let model = (1...8).map { (seed: UInt64) in
        Case("any sequence of operations has the answers of the model (seed \(seed))") { store in
            let model = SimulatedMetadata()
            var walk = MetadataWalk(seed: seed)
            for number in 1...operationCount {
                let place = "seed \(seed), operation \(number)"
                let operation = try await walk.next(on: model)
                guard await makesAlike(operation, place, &walk, store, model) else { return }
                guard try await countsAlike(place, operation, store, model) else { return }
                guard number.isMultiple(of: operationsBetweenLooks) else { continue }
                guard try await looksAlike(place, walk, store, model) else { return }
            }
            for operation in walk.last() {
                guard await makesAlike(operation, "seed \(seed), end", &walk, store, model)
                else { return }
            }
        }
    }

    /// Makes a call on both stores.
    ///
    /// - Returns: False when the stores differ: further calls would prove nothing.
    private static func makesAlike(
        _ operation: MetadataOperation, _ place: String, _ walk: inout MetadataWalk,
        _ store: any MetadataStore, _ model: SimulatedMetadata
    ) async -> Bool {
        let found = await operation.run(on: store).inOrder
        let expected = await operation.run(on: model).inOrder
        walk.note(operation, expected)
        if found == expected { return true }
        Issue.record(
            "\(place): \(operation)\nthe store answers \(found)\nthe model \(expected)")
        return false
    }

    /// Compares the sums that the store keeps with those of the model, which adds them up anew.
    private static func countsAlike(
        _ place: String, _ operation: MetadataOperation, _ store: any MetadataStore,
        _ model: SimulatedMetadata
    ) async throws -> Bool {
        for owner in [Sample.owner, Sample.stranger] {
            let found = try await store.quota(of: owner, within: .none)
            let expected = try await model.quota(of: owner, within: .none)
            guard found != expected else { continue }
            Issue.record(
                "\(place): \(operation)\nthe sums of \(owner) are \(found), not \(expected)")
            return false
        }
        return true
    }

    private static func looksAlike(
        _ place: String, _ walk: MetadataWalk, _ store: any MetadataStore,
        _ model: SimulatedMetadata
    ) async throws -> Bool {
        let seen = try await MetadataObservation(of: store, about: walk.known)
        let expected = try await MetadataObservation(of: model, about: walk.known)
        guard let difference = seen.difference(to: expected) else { return true }
        Issue.record("\(place): \(difference)")
        return false
    }
}
