// The transaction of `posthaste simulate` in ns-3: one connection after the other between two nodes.
//
// Prints the response time of each in milliseconds, a line each. What ns-3 leaves at other values than
// posthaste's profile `rfc` is set here: segments of 1,448 bytes with timestamps, an initial window of
// three, a first timeout of one second for SYNs and data. A position is dropped where the client
// receives, so that, unlike in dummynet, the lost packet takes its time on the line.
// After a lost SYN or SYN-ACK ns-3 begins with the same window as ever, against RFC 5681, section 3.1:
// `--window=1` is for that.

#include <cstdio>
#include <functional>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

struct Settings {
    std::string bandwidth = "300kbps";
    std::string delay = "10ms";
    double loss = 0.0;
    uint32_t position = 0;
    uint32_t window = 3;
    uint32_t transactions = 1;
    uint32_t request = 1438;
    uint32_t reply = 12974;
    std::string processing = "200ms";
};

Settings settings;
Ptr<Node> client, server;
Ptr<ReceiveListErrorModel> positions;
Ipv4Address address;
uint32_t done = 0;
const uint16_t PORT = 80;

// One connection's server.
struct Answering : public SimpleRefCount<Answering> {
    uint32_t received = 0;
    uint32_t unwritten = 0;

    void Write(Ptr<Socket> socket, uint32_t) {
        while (unwritten > 0) {
            uint32_t room = std::min(socket->GetTxAvailable(), unwritten);
            if (room == 0) {
                return;
            }
            socket->Send(Create<Packet>(room));
            unwritten -= room;
            if (unwritten == 0) {
                socket->Close();
            }
        }
    }

    void Answer(Ptr<Socket> socket) {
        unwritten = settings.reply;
        Write(socket, 0);
    }

    void Read(Ptr<Socket> socket) {
        while (Ptr<Packet> packet = socket->Recv()) {
            if (packet->GetSize() == 0) {
                break;
            }
            received += packet->GetSize();
            if (received == settings.request) {
                Simulator::Schedule(Time(settings.processing), &Answering::Answer, this, socket);
            }
        }
    }
};

void Accept(Ptr<Socket> socket, const Address&) {
    Ptr<Answering> answering = Create<Answering>();
    socket->SetRecvCallback([answering](Ptr<Socket> socket) { answering->Read(socket); });
    socket->SetSendCallback(
        [answering](Ptr<Socket> socket, uint32_t room) { answering->Write(socket, room); });
}

void Begin();

// One connection's client.
struct Asking : public SimpleRefCount<Asking> {
    Time began;
    uint32_t received = 0;
    bool ended = false;

    void Read(Ptr<Socket> socket) {
        while (Ptr<Packet> packet = socket->Recv()) {
            if (packet->GetSize() == 0) {
                break;
            }
            received += packet->GetSize();
            if (received == settings.reply) {
                Time taken = Simulator::Now() - began;
                std::printf("%.6f\n", taken.GetNanoSeconds() / 1e6);
            }
        }
    }

    // The server has closed, or nothing more can come: the next one begins when this one's last
    // segments are through.
    void End(Ptr<Socket> socket) {
        if (ended) {
            return;
        }
        ended = true;
        socket->Close();
        Simulator::Schedule(Seconds(5), &Begin);
    }
};

void Begin() {
    if (done++ == settings.transactions) {
        Simulator::Stop();
        return;
    }
    if (settings.position > 0) {
        positions->Reset();
        positions->SetList({settings.position - 1});
    }
    Ptr<Asking> asking = Create<Asking>();
    asking->began = Simulator::Now();
    Ptr<Socket> socket = Socket::CreateSocket(client, TcpSocketFactory::GetTypeId());
    socket->SetConnectCallback(
        [](Ptr<Socket> socket) { socket->Send(Create<Packet>(settings.request)); },
        [asking](Ptr<Socket> socket) { asking->End(socket); });
    socket->SetRecvCallback([asking](Ptr<Socket> socket) { asking->Read(socket); });
    auto end = [asking](Ptr<Socket> socket) { asking->End(socket); };
    socket->SetCloseCallbacks(end, end);
    socket->Bind();
    socket->Connect(InetSocketAddress(address, PORT));
}

void Configure() {
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(settings.window));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
}

void Connect() {
    NodeContainer nodes;
    nodes.Create(2);
    client = nodes.Get(0);
    server = nodes.Get(1);
    PointToPointHelper line;
    line.SetDeviceAttribute("DataRate", StringValue(settings.bandwidth));
    line.SetChannelAttribute("Delay", StringValue(settings.delay));
    NetDeviceContainer devices = line.Install(nodes);
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    address = addresses.Assign(devices).GetAddress(1);
    if (settings.position > 0) {
        positions = CreateObject<ReceiveListErrorModel>();
        devices.Get(0)->SetAttribute("ReceiveErrorModel", PointerValue(positions));
    }
    for (uint32_t end = 0; end < 2 && settings.loss > 0.0; end++) {
        Ptr<RateErrorModel> losses = CreateObject<RateErrorModel>();
        losses->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        losses->SetRate(settings.loss);
        devices.Get(end)->SetAttribute("ReceiveErrorModel", PointerValue(losses));
    }
    Ptr<Socket> listening = Socket::CreateSocket(server, TcpSocketFactory::GetTypeId());
    listening->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    listening->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                 MakeCallback(&Accept));
    listening->Listen();
}

}  // namespace

int main(int count, char** words) {
    CommandLine line(__FILE__);
    line.AddValue("bandwidth", "each way, for example 300kbps", settings.bandwidth);
    line.AddValue("delay", "each way", settings.delay);
    line.AddValue("loss", "probability that a packet is lost, each way", settings.loss);
    line.AddValue("position", "packet from the server that is lost; 0 is none", settings.position);
    line.AddValue("window", "segments of the first flight", settings.window);
    line.AddValue("transactions", "how many", settings.transactions);
    line.AddValue("request", "bytes", settings.request);
    line.AddValue("reply", "bytes", settings.reply);
    line.AddValue("processing", "how long the server takes", settings.processing);
    line.Parse(count, words);
    Configure();
    Connect();
    Simulator::Schedule(Seconds(1), &Begin);
    Simulator::Run();
    Simulator::Destroy();
    return 0;
}
