#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wire/connection.hpp"
#include "wire/grpc/session.hpp"
#include "wire/grpc/stream.hpp"

namespace headrace::wire::grpc {

/// A connection of gRPC over HTTP/2, with many concurrent calls. Used by one thread.
class Connection final : public wire::Connection, public SessionEvents, public StreamOwner {
 public:
  /// Throws SystemError if the socket cannot be watched.
  Connection(Front& front, Transport transport);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void on_open(std::int32_t id) override;
  void on_header(std::int32_t id, std::string_view name, std::string_view value) override;
  void on_head(std::int32_t id) override;
  void on_data(std::int32_t id, std::string_view bytes) override;
  void on_end(std::int32_t id) override;
  void on_close(std::int32_t id) override;
  Chunk fill(std::int32_t id, std::span<char> frame) override;

  void attend(Stream& stream) override;
  void give_up() noexcept override { close(); }

 private:
  [[nodiscard]] std::string_view read(std::string_view bytes) override;
  [[nodiscard]] bool reads() const noexcept override;
  [[nodiscard]] bool asks() const noexcept override;
  void moved() noexcept override { sent_at_ = front().now; }
  void written() override;
  void resume() override;
  void check_time(Time now) override;
  void abandon() noexcept override;

  /// The stream with an identifier; null if it is over.
  [[nodiscard]] Stream* find(std::int32_t id) noexcept;
  /// Sends the session's output, as much as there is room for.
  void pump();
  /// Whether another frame may be prepared. Unsent frames count as memory of replies. One frame is always allowed, so
  /// that a connection continues as soon as its client reads.
  [[nodiscard]] bool has_room() noexcept;
  /// Tells the client in the steps of Goodbye that the connection is about to end, and ends it once no call is left.
  void say_goodbye();

  /// How far the client has been told of the end.
  enum class Goodbye : std::uint8_t { none, announced, said };

  MemoryShare out_memory_;  ///< Memory of the bytes that unwritten() counts.
  Session session_;
  std::unordered_map<std::int32_t, std::unique_ptr<Stream>> streams_;
  Stream* found_ = nullptr;             ///< Last result of find(), because events of one stream often come in a row.
  std::vector<std::int32_t> attended_;  ///< Streams whose advance() is pending.
  bool pumping_ = false;
  Goodbye goodbye_ = Goodbye::none;
  Time check_streams_at_{};
  Time sent_at_;  ///< When bytes were last sent, or began to wait.
};

}  // namespace headrace::wire::grpc
