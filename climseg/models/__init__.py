"""Networks: (B, C, H, W) in, logits (B, K, H, W) out."""
