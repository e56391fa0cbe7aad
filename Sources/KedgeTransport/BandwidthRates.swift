/// Limits of the rates at which bodies move, in bytes a second.
public struct BandwidthRates: Sendable, Hashable {
    /// Of bodies that are sent; nil for no limit.
    public var upload: Int64?
    /// Of bodies that are received; nil for no limit.
    public var download: Int64?

    /// Creates rates above zero; nil for no limit.
    public init(upload: Int64? = nil, download: Int64? = nil) {
        self.upload = upload
        self.download = download
    }
}
