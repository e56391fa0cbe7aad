/// Settings of the rates of requests; 0 is no limit.
package struct RateSettings: Hashable, Sendable {
    /// Requests of one owner.
    package var requestsPerSecond = 0
    /// New uploads of one owner.
    package var createsPerMinute = 0
    /// Refused credentials of one client network.
    package var failedAuthenticationsPerSecond = 0

    package init() {}
}
