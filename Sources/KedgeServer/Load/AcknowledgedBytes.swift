internal import NIOCore

#if canImport(Glibc)
internal import Glibc
#endif

/// The number of sent bytes that the client's system has acknowledged on a connection.
///
/// The kernel's send buffer can hold megabytes and accepts more only when a third of it is free.
/// From here, a slow reader seems to take nothing for minutes. The kernel knows the acknowledged
/// bytes.
enum AcknowledgedBytes {
    #if canImport(Glibc)
    /// `struct tcp_info` of linux/tcp.h up to `tcpi_bytes_acked`, its sixteenth group of eight
    /// bytes. The field exists since Linux 4.1; glibc declares an older form without it.
    private typealias Info = (
        UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64,
        UInt64, UInt64, UInt64, UInt64, UInt64
    )

    /// Returns nil for a closed connection. Must be called on the channel's event loop.
    static func count(of channel: any Channel) -> UInt64? {
        guard let options = channel as? any SocketOptionProvider else { return nil }
        let info: EventLoopFuture<Info> = options.unsafeGetSocketOption(
            level: .tcp, name: NIOBSDSocket.Option(rawValue: TCP_INFO))
        var count: UInt64?
        // Completed already, because the channel was asked on its event loop.
        info.assumeIsolated().whenSuccess { count = $0.15 }
        return count
    }
    #else
    /// Other systems do not report the number.
    static func count(of channel: any Channel) -> UInt64? { nil }
    #endif
}
