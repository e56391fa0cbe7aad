internal import KedgeHash

extension FileHashStep {
    /// Makes the step of a session's chunk.
    ///
    /// - Parameter start: Offset of the chunk's first byte.
    init(_ session: LiveSession, start: Int64) {
        let timer = session.context.timer
        self.init(
            in: session.prefix.fileHashing, at: start,
            limits: session.context.configuration.hashStepLimits
        ) {
            try await timer.sleep(for: $0)
        }
    }
}
