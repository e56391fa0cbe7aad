internal import NIOCore

#if canImport(Glibc)
internal import Glibc
#endif

/// How much of what was sent over a connection the client's system has taken.
///
/// The kernel's send buffer can hold megabytes, and takes more only when a third of it is free: seen from here a
/// slow reader takes nothing for minutes. The kernel knows what was acknowledged.
enum AcknowledgedBytes {
    #if canImport(Glibc)
    /// `struct tcp_info` of linux/tcp.h up to `tcpi_bytes_acked`, its sixteenth group of eight bytes, which has
    /// been there since Linux 4.1. glibc declares an older form, without it.
    private typealias Info = (
        UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64,
        UInt64, UInt64, UInt64, UInt64, UInt64
    )

    /// Nil for a connection that is gone. On the channel's event loop only.
    static func count(of channel: any Channel) -> UInt64? {
        guard let options = channel as? any SocketOptionProvider else { return nil }
        let info: EventLoopFuture<Info> = options.unsafeGetSocketOption(
            level: .tcp, name: NIOBSDSocket.Option(rawValue: TCP_INFO))
        var count: UInt64?
        // Done already: the channel was asked on its event loop.
        info.assumeIsolated().whenSuccess { count = $0.15 }
        return count
    }
    #else
    /// Other systems do not tell.
    static func count(of channel: any Channel) -> UInt64? { nil }
    #endif
}
