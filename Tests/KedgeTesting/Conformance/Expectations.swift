internal import KedgeEngine
internal import Testing

/// Expects that the store refuses, with any error.
func expectRefusal(
    _ location: SourceLocation = #_sourceLocation, _ operation: () async throws -> Void
) async {
    do {
        try await operation()
        Issue.record("the store accepted it", sourceLocation: location)
    } catch MetadataError.failed {
        // The refusal is expected.
    } catch {
        Issue.record(error, sourceLocation: location)
    }
}
