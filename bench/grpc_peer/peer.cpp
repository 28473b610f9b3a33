// A server of ModelInfer in gRPC C++, which bench/wire_speed.py measures beside `headrace serve`: it returns each
// query's first 64 bytes as the answer, which costs nothing. Prints its port, and ends with standard input.
//
//   peer cq|callback

#include <grpcpp/grpcpp.h>
#include <infer.grpc.pb.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace {

constexpr std::size_t kAnswerBytes = 64;
constexpr int kCallsWaiting = 512;  // for the completion queue: more than clients have in flight

void answer(const inference::ModelInferRequest& query, inference::ModelInferResponse& reply) {
  reply.set_model_name(query.model_name());
  reply.set_model_version("1");
  auto& output = *reply.add_outputs();
  output.set_name("answer");
  output.set_datatype("UINT8");
  output.add_shape(1);
  output.add_shape(kAnswerBytes);
  reply.add_raw_output_contents(query.raw_input_contents(0).substr(0, kAnswerBytes));
}

class Callbacks final : public inference::GRPCInferenceService::CallbackService {
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context, const inference::ModelInferRequest* query,
                                       inference::ModelInferResponse* reply) override {
    answer(*query, *reply);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

using Async = inference::GRPCInferenceService::AsyncService;

class Call {
 public:
  Call(Async& service, grpc::ServerCompletionQueue& queue) : service_(service), queue_(queue), responder_(&context_) {
    service_.RequestModelInfer(&context_, &query_, &responder_, &queue_, &queue_, this);
  }
  void proceed() {
    if (replied_) {
      delete this;
      return;
    }
    new Call(service_, queue_);
    answer(query_, reply_);
    replied_ = true;
    responder_.Finish(reply_, grpc::Status::OK, this);
  }

 private:
  Async& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  inference::ModelInferRequest query_;
  inference::ModelInferResponse reply_;
  grpc::ServerAsyncResponseWriter<inference::ModelInferResponse> responder_;
  bool replied_ = false;
};

void take_calls(Async& service, grpc::ServerCompletionQueue& queue) {
  for (int i = 0; i < kCallsWaiting; ++i) new Call(service, queue);
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
    if (ok) {
      static_cast<Call*>(tag)->proceed();
    } else {
      delete static_cast<Call*>(tag);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const bool by_queue = count == 2 && std::string_view(arguments[1]) == "cq";
  if (count != 2 || (!by_queue && std::string_view(arguments[1]) != "callback")) {
    std::fputs("usage: peer cq|callback\n", stderr);
    return 2;
  }
  Async async;
  Callbacks callbacks;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  if (by_queue) {
    builder.RegisterService(&async);
    queue = builder.AddCompletionQueue();
  } else {
    builder.RegisterService(&callbacks);
  }
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::printf("%d\n", port);
  std::fflush(stdout);
  std::thread worker;
  if (by_queue) worker = std::thread([&] { take_calls(async, *queue); });
  while (std::getchar() != EOF) {
  }
  server->Shutdown(std::chrono::system_clock::now());
  if (queue != nullptr) queue->Shutdown();
  if (worker.joinable()) worker.join();
  return 0;
}
