internal import Hummingbird
internal import HummingbirdCore
internal import KedgeEngine
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import NIOHTTPTypesHTTP1

/// How a connection is served: HTTP/1.1 by Hummingbird, with handlers of ours around it.
struct HTTPConnection: HTTPChannelHandler {
    /// What is set for every connection.
    struct Settings: Sendable {
        var idleTimeout: Duration
        var minBodyBytesPerSecond: Int
        /// Most bytes that are thrown away after an early answer.
        var lingerByteCount: Int
        var table: ConnectionTable
        var proxies: TrustedProxies
        /// Waiting over which it is judged whether a reader is slow.
        var readerWindow: Duration
        var interim: InterimPolicy
        var drain: DrainState
        var logger: Logger
    }

    /// Most header bytes in one field, in all, and the number of fields.
    private static let headerLimits = (field: 16 << 10, all: 32 << 10, fields: 100)

    let responder: Responder
    let settings: Settings

    /// A connection as Hummingbird sees it, and what is below.
    struct Value: ServerChildChannelValue {
        let parts: NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>
        let raw: RawConnection
        var channel: any Channel { parts.channel }
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            // What one read brings waits in memory while nobody wants it.
            try channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
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
            try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
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
                    files: FileSender(wire, eventLoop: channel.eventLoop), progress: progress,
                    interim: settings.interim))
        }
    }

    func handle(value: Value, logger: Logger) async {
        await RawConnection.$current.withValue(value.raw) {
            await handleHTTP(asyncChannel: value.parts, logger: logger)
        }
    }
}
