/// A server on 127.0.0.1 that runs one script for every connection, on a thread of its own.
///
/// Scripts speak raw bytes, so that they can misbehave in ways that no real server would.
package final class ScriptedServer: Sendable {
    private let listener: LoopbackListener

    package var port: UInt16 { listener.port }

    package init(_ script: @escaping @Sendable (RawConnection) -> Void) {
        do {
            listener = try LoopbackListener { script(RawConnection(socket: $0)) }
        } catch {
            preconditionFailure("\(error)")
        }
    }

    package func url(_ path: String = "/") -> String { listener.url + path }
}
