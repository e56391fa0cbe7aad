internal import Hummingbird
internal import HummingbirdCore
internal import KedgeEngine
internal import KedgeTLS
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import NIOHTTPTypesHTTP1

/// Serves HTTP/1.1 connections with Hummingbird and additional channel handlers.
struct HTTPConnection: HTTPChannelHandler {
    struct Settings: Sendable {
        var idleTimeout: Duration
        var minBodyBytesPerSecond: Int
        /// Maximum number of bytes discarded after an early response.
        var lingerByteCount: Int
        var table: ConnectionTable
        var proxies: TrustedProxies
        /// Waiting time over which a reader's rate is measured.
        var readerWindow: Duration
        var interim: InterimPolicy
        var drain: DrainState
        /// Nil for HTTP without TLS.
        var tls: TLSServer?
        var logger: Logger
    }

    /// Maximum header bytes in one field and in total, and maximum number of fields.
    private static let headerLimits = (field: 16 << 10, all: 32 << 10, fields: 100)

    let responder: Responder
    let settings: Settings

    /// A connection as Hummingbird sees it, with the raw connection below.
    struct Value: ServerChildChannelValue {
        let parts: NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>
        let raw: RawConnection
        var channel: any Channel { parts.channel }
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            // Limits the bytes that wait in memory while no task reads the body.
            try channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
            try settings.tls?.addHandlers(to: channel)
            let isSecure = settings.tls != nil
            let pipeline = channel.pipeline.syncOperations
            var limits = NIOHTTPDecoderLimitConfiguration()
            limits.maxHeaderFieldSize = Self.headerLimits.field
            limits.maxHeaderListSize = Self.headerLimits.all
            limits.maxHeaderFieldCount = Self.headerLimits.fields
            try pipeline.configureHTTPServerPipeline(
                withPipeliningAssistance: false, withErrorHandling: false,
                withOutboundHeaderValidation: false, withEncoderConfiguration: .init(),
                withDecoderLimitConfiguration: limits)
            let wire = WireHandler(logger: settings.logger)
            try pipeline.addHandler(wire)
            try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: isSecure))
            let progress = BodyProgress()
            try pipeline.addHandler(
                ConnectionGuard(
                    minBytesPerSecond: settings.minBodyBytesPerSecond,
                    lingerByteCount: settings.lingerByteCount,
                    readerTimeout: TimeAmount(settings.idleTimeout), drain: settings.drain,
                    load: ConnectionLoad(
                        table: settings.table, proxies: settings.proxies, progress: progress,
                        readerWindow: TimeAmount(settings.readerWindow))))
            try pipeline.addHandler(
                HTTPConnectionStateHandler(idleTimeout: settings.idleTimeout, logger: logger))
            let intake = BodyIntake()
            try pipeline.addHandler(intake)
            return Value(
                parts: try NIOAsyncChannel(
                    wrappingChannelSynchronously: channel,
                    configuration: .init(isOutboundHalfClosureEnabled: true)),
                raw: RawConnection(
                    bodies: BodySource(intake, eventLoop: channel.eventLoop),
                    files: isSecure ? nil : FileSender(wire, eventLoop: channel.eventLoop),
                    progress: progress, interim: settings.interim))
        }
    }

    func handle(value: Value, logger: Logger) async {
        await RawConnection.$current.withValue(value.raw) {
            await handleHTTP(asyncChannel: value.parts, logger: logger)
        }
    }
}
